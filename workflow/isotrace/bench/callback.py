"""What a probe every hundred steps adds to training: its time beside that of a hundred steps.

The bound, under 3 % of step time, is our choice of what a team would not notice.
"""

import numpy as np
import torch

from isotrace.bench.registry import Measured, Settings, Sizes, bench
from isotrace.bench.timing import interleaved, rounded
from isotrace.bench.workload.bare import random_model
from isotrace.capture.probe import Probe
from isotrace.corpus.held_out import held_out_passes
from isotrace.corpus.stores import Passes

EVERY = 100


@bench(
    "callback",
    compared=f"{EVERY} training steps with a probe (16 and 24 sequences) / without",
    wanted="at most 1.03",
    sizes={"layers": 6, "width": 384, "vocabulary": 8192, "length": 256, "batch_size": 32, "rows": 256},
)
def callback(settings: Settings) -> Measured:
    """The medians of one step and of one probe, in seconds, and 1 + probe / (100 steps): nobody waits for a hundred."""
    model = random_model(settings.sizes).requires_grad_(True)
    probe = Probe(_passes(settings.sizes), batch_size=settings.sizes["batch_size"])
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.from_numpy(_ids(settings.sizes, settings.sizes["batch_size"])).to(next(model.parameters()).device)

    def step(_i: int) -> None:
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        _wait()

    times = interleaved(lambda _i: probe.measure(model), step, settings.pairs)
    one, between = float(np.median(times.ours)), float(np.median(times.baseline))
    return Measured(rounded(1 + one / (EVERY * between)), {"probe_s": rounded(one), "step_s": rounded(between)})


def _ids(sizes: Sizes, sequences: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.random.default_rng(0).integers(0, sizes["vocabulary"], (sequences, sizes["length"]))


def _passes(sizes: Sizes) -> Passes:
    rows = (sizes["rows"], sizes["rows"])
    return held_out_passes(_ids(sizes, 64), _Tokenizer(sizes["vocabulary"]), rows_per_bucket=rows)


class _Tokenizer:
    """As much of a tokenizer as a sample asks of one."""

    all_special_ids = ()
    mask_token_id = None

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
