"""Config block for untrained models of each architecture, which its checkpoints are set beside."""

from pydantic import field_validator

from isotrace.settings.base import Block, key


class Untrained(Block):
    """Untrained models of the same architectures, to be seen beside the trained ones."""

    seeds: list[int] = key(
        [],
        "seeds of the weights, rising: activations of as many untrained models of each architecture are measured and "
        "drawn in figure cosine_by_depth, beside the series' own step 0; of series of `source: init` none are added",
    )

    @field_validator("seeds")
    @classmethod
    def _check(cls, seeds: list[int]) -> list[int]:
        if sorted(set(seeds)) != seeds or (seeds and seeds[0] < 0):
            raise ValueError(f"seeds must rise from 0 or more without repeats, got {seeds}")
        return seeds
