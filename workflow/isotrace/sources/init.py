"""Untrained models as a series of their own, or as the step 0 that a stored series lacks."""

from dataclasses import replace

from isotrace.checkpoints.classes import PERCEIVED
from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Init
from isotrace.sources.local import required_tokenizer
from isotrace.sources.series import RESULTS, Found, Series, processor_file, required_config


def find(name: str, model: Model, source: Init) -> Series:
    """A checkpoint a seed, all at step 0, in the folders that rule ``initialise`` writes; ConfigError names the key."""
    where, weights = f"models.{name}.source", f"{RESULTS}/weights/{name}"
    single = len(source.seeds) == 1
    found = tuple(
        _untrained("step0" if single else f"step0-seed{seed}", f"{weights}/init-{seed}") for seed in source.seeds
    )
    shape = f"{found[0].path}/config.json"
    if source.folder is not None:
        shape = required_config(f"{where}.folder", source.folder)
    folder = source.tokenizer or source.folder
    perceives = model.task in PERCEIVED
    file = "tokenizer_config.json" if model.modality == "bytes" else "tokenizer.json"
    tokenizer = "" if perceives else f"{weights}/tokenizer/{file}"
    if folder and model.task != "characters":
        tokenizer = (processor_file if perceives else required_tokenizer)(where, folder)
    return Series(name, "init", found, model.total_steps or 1, tokenizer, shape)


def with_untrained(series: Series) -> Series:
    """The series with an untrained step 0 of its own architecture; ConfigError where it has a step 0."""
    at_zero = next((f for f in series.found if f.step == 0), None)
    if at_zero is not None:
        raise ConfigError(
            f"models.{series.model}.source.with_init: the series has a step 0 of its own, {at_zero.path}; leave it out"
        )
    return replace(series, found=(_untrained("step0", f"{RESULTS}/weights/{series.model}/init"), *series.found))


def _untrained(identifier: str, folder: str) -> Found:
    return Found(identifier, 0, folder, made_by=f"{folder}.json", tokens=0)
