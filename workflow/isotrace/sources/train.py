"""A series that the workflow trains itself: its steps stand in the config."""

from isotrace.settings.inputs import Model
from isotrace.settings.sources import Training
from isotrace.sources.series import RESULTS, Found, Series


def find(name: str, model: Model, source: Training) -> Series:
    """Checkpoints at the configured steps, in the folders that rule ``train`` writes."""
    folder = f"{RESULTS}/weights/{name}"
    found = [
        Found(f"step{step}", step, f"{folder}/checkpoint-{step}", made_by=f"{folder}/series.json")
        for step in source.steps
    ]
    return Series(
        name, "train", tuple(found), model.total_steps or source.steps[-1], f"{folder}/tokenizer/tokenizer.json"
    )
