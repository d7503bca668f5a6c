"""A series of folders on this machine, globbed while the workflow is parsed."""

from pathlib import Path

from isotrace.checkpoints.classes import PERCEIVED
from isotrace.checkpoints.load import weight_files
from isotrace.checkpoints.local import discover, left_out
from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Local
from isotrace.sources.series import Found, Series, processor_file, required_config, tokenizer_file


def find(name: str, model: Model, source: Local) -> Series:
    """Folders of the pattern; the first with a config gives tokenizer and shape, whatever is added later.

    ConfigError, naming the key, for no folder, config, weights or tokenizer, and, where ``on_broken`` is ``error``,
    for names beside the checkpoints that are none.
    """
    where = f"models.{name}.source"
    folders = discover(source.path)
    if not folders:
        raise ConfigError(f"{where}.path: no folder matches {source.path!r}")
    beside = tuple({"name": one.name, "reason": one.reason} for one in left_out(source.path))
    if beside and source.on_broken == "error":
        raise ConfigError(
            f"{where}.on_broken: error, and beside the checkpoints lie {', '.join(one['name'] for one in beside)}; "
            f"take them away, or skip them"
        )
    bare = {f.path for f in folders if not (Path(f.path) / "config.json").is_file()}
    shape = _shape(where, source, [f.path for f in folders if f.path not in bare])
    if not any(weight_files(Path(f.path)) for f in folders):
        raise ConfigError(
            f"{where}.path: none of the {len(folders)} folders that match {source.path!r} holds weights "
            f"(*.safetensors or pytorch_model*.bin)"
        )
    found = tuple(
        Found(f.id, f.step, f.path, tokens=_tokens(model, f.step), config=source.config if f.path in bare else None)
        for f in folders
    )
    reference = next((f.path for f in folders if f.path not in bare), None) or next(
        (f.path for f in folders if tokenizer_file(f.path)), Path(shape).parent
    )
    of = processor_file if model.task in PERCEIVED else required_tokenizer
    tokenizer = "" if model.task == "characters" else of(where, source.tokenizer or str(reference))
    total = model.total_steps or folders[-1].step
    return Series(name, "local", found, total, tokenizer, shape, left_out=beside)


def _shape(where: str, source: Local, whole: list[str]) -> str:
    """The config.json that speaks for the series; ``whole`` are the checkpoints with one."""
    if source.config is not None:
        return required_config(f"{where}.config", source.config)
    if not whole:
        raise ConfigError(
            f"{where}.path: no folder of {source.path!r} has a config.json; name a folder that has one: {where}.config"
        )
    return f"{whole[0]}/config.json"


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
