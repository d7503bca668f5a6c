"""Attention over a long context is read without holding its matrices."""

import subprocess
import sys

READ = """
from pathlib import Path
import numpy as np, torch
from transformers import AutoConfig, AutoModel
from isotrace.capture.attention import attention_sums
size = {"hidden_size": 384, "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 256}
config = AutoConfig.for_model("llama", vocab_size=99, num_hidden_layers=1, max_position_embeddings=2048, **size)
model = AutoModel.from_config(config).eval()
model.config.use_cache = False
ids = np.arange(2048)[None] % 99
peaks = []
for length in (64, 2048):
    attention_sums(model, ids[:, :length], ids[:, :length] % 4, ("b0", "b1", "b2", "b3"), batch_size=16)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peaks.append(int(status["VmHWM"].split()[0]) / 1024)  # ru_maxrss would count the parent's too
print(peaks[1] - peaks[0])
"""


def test_a_context_of_2048_tokens_takes_under_500_mb() -> None:
    """One head's float64 matrix alone is 34 MB, all of a layer's 403."""
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
    assert 1 < float(done.stdout) < 500
