"""A series of folders on this machine, globbed while the workflow is parsed."""

from pathlib import Path

from isotrace.checkpoints.load import weight_files
from isotrace.checkpoints.local import discover
from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Local
from isotrace.sources.series import Found, Series, tokenizer_file


def find(name: str, model: Model, source: Local) -> Series:
    """Folders of the pattern; the first with a config gives tokenizer and shape, whatever is added later."""
    where = f"models.{name}.source"
    folders = discover(source.path)
    if not folders:
        raise ConfigError(f"{where}.path: no folder matches {source.path!r}")
    reference = next((f.path for f in folders if (Path(f.path) / "config.json").is_file()), None)
    if reference is None:
        raise ConfigError(f"{where}.path: no folder of {source.path!r} has a config.json")
    if not any(weight_files(Path(f.path)) for f in folders):
        raise ConfigError(
            f"{where}.path: none of the {len(folders)} folders that match {source.path!r} holds weights "
            f"(*.safetensors or pytorch_model*.bin)"
        )
    found = tuple(Found(f.id, f.step, f.path, tokens=_tokens(model, f.step)) for f in folders)
    tokenizer = required_tokenizer(where, source.tokenizer or reference)
    total = model.total_steps or folders[-1].step
    return Series(name, "local", found, total, tokenizer, shape=f"{reference}/config.json")


def required_tokenizer(where: str, folder: str) -> str:
    """The tokenizer's file in a folder; ConfigError at ``where`` if there is none."""
    file = tokenizer_file(folder)
    if file is None:
        raise ConfigError(
            f"{where}.tokenizer: {folder} holds no tokenizer.json or tokenizer_config.json; copy the tokenizer there, "
            f"or name a folder that has one"
        )
    return file


def _tokens(model: Model, step: int) -> int | None:
    return None if model.tokens_per_step is None else model.tokens_per_step * step
