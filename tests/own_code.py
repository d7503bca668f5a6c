"""A GPT-NeoX whose classes come with the repo, as files; and code that gives itself away when it is run."""

import json
from pathlib import Path

from safetensors.numpy import load_file, save_file

CONFIGURATION = """from transformers import GPTNeoXConfig


class TinyOwnConfig(GPTNeoXConfig):
    model_type = "tiny_own"
"""
MODELING = """from transformers import GPTNeoXForCausalLM

from .configuration_tiny import TinyOwnConfig


class TinyOwnForCausalLM(GPTNeoXForCausalLM):
    config_class = TinyOwnConfig
"""
AUTO_MAP = {
    "AutoConfig": "configuration_tiny.TinyOwnConfig",
    "AutoModelForCausalLM": "modeling_tiny.TinyOwnForCausalLM",
}


def give_code(folder: Path, *, trap: Path | None = None) -> None:
    """Put the two modules into a folder; with ``trap``, modules that write that file when they are imported."""
    first = f"open({str(trap)!r}, 'w').close()\n" if trap else ""
    (folder / "configuration_tiny.py").write_text(first + CONFIGURATION)
    (folder / "modeling_tiny.py").write_text(first + MODELING)


def name_code(folder: Path) -> None:
    """Let a gpt_neox checkpoint name those classes as its own, its head called what they call it."""
    weights = folder / "model.safetensors"
    tensors = {name.replace("embed_out", "lm_head"): tensor for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, {"format": "pt"})
    file = folder / "config.json"
    config = json.loads(file.read_text()) | {"model_type": "tiny_own", "auto_map": AUTO_MAP}
    file.write_text(json.dumps(config))
