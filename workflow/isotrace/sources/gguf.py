"""One checkpoint in a GGUF file, which rule ``dequantise`` turns into an ordinary folder."""

from pathlib import Path

from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Gguf
from isotrace.sources.local import required_tokenizer
from isotrace.sources.series import RESULTS, Found, Series


def find(name: str, model: Model, source: Gguf) -> Series:
    """One checkpoint at the configured step; ConfigError where the file, or an early checkpoint, is missing."""
    where = f"models.{name}.source"
    if not Path(source.path).is_file():
        raise ConfigError(f"{where}.path: no file {source.path}")
    if not source.with_init or model.total_steps is None:
        raise ConfigError(
            f"{where}.with_init: a GGUF file holds one checkpoint and bases need two early ones; set with_init: true, "
            f"and models.{name}.total_steps so that step {source.step} is within bases.early_fraction of it"
        )
    if source.tokenizer is not None:
        required_tokenizer(where, source.tokenizer)
    folder = f"{RESULTS}/weights/{name}/dequantised"
    tokens = None if model.tokens_per_step is None else model.tokens_per_step * source.step
    found = Found(f"step{source.step}", source.step, folder, made_by=f"{folder}.json", tokens=tokens)
    tokenizer, shape = f"{folder}/tokenizer.json", f"{folder}/config.json"
    return Series(name, "gguf", (found,), model.total_steps, tokenizer, shape)
