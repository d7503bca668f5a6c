"""Config block of the toy: one untrained block fed with Gaussian inputs."""

from pydantic import model_validator

from isotrace.settings.base import Block, key


class Toy(Block):
    """An untrained block over Gaussian inputs of known cosine, for table and figure `toy`; no checkpoint enters."""

    width: int = key(64, "width of the block", ge=8)
    heads: int = key(4, "attention heads; they divide the width", ge=1)
    tokens: int = key(32, "tokens a sequence", unit="tokens", ge=2)
    sequences: int = key(8, "sequences a seed", unit="sequences", ge=2)
    input_cosines: list[float] = key([0.0, 0.2, 0.5, 0.9], "expected cosines of two inputs, rising", min_length=1)
    qk_scales: list[float] = key(
        [0.0, 1.0, 2.0, 4.0, 8.0, 16.0], "factors on queries times keys, rising; 0 is uniform attention", min_length=1
    )
    seeds: int = key(5, "blocks drawn, over which intervals are", unit="blocks", ge=2)
    confidence: float = key(0.95, "level of the intervals", gt=0.5, lt=1)

    @model_validator(mode="after")
    def _check(self) -> "Toy":
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads} do not divide the width {self.width}")
        for name, values in (("input_cosines", self.input_cosines), ("qk_scales", self.qk_scales)):
            if sorted(set(values)) != values or values[0] < 0:
                raise ValueError(f"{name} must rise from 0 or more without repeats, got {values}")
        if self.input_cosines[-1] >= 1:
            raise ValueError(f"input_cosines must be below 1, got {self.input_cosines}")
        return self
