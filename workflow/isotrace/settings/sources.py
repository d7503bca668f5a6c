"""Config blocks for where checkpoints come from, one a kind of source."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from isotrace.settings.base import Block, key


class Training(Block):
    """A series trained by the workflow itself, saved as ordinary transformers folders."""

    kind: Literal["train"] = key(..., "the workflow trains the model")
    architecture: dict[str, Any] = key(..., "transformers config: `model_type` and its fields")
    vocabulary: int = key(4096, "entries of the byte-level BPE trained on the corpus", unit="tokens", ge=300)
    steps: list[int] = key(
        ..., "optimizer steps at which a checkpoint is saved, rising; 0 is the untrained model", min_length=2
    )
    batch_size: int = key(16, "sequences a step", unit="sequences", ge=1)
    learning_rate: float = key(1e-3, "peak learning rate of AdamW", gt=0)
    warmup_steps: int = key(40, "steps of linear warm-up; then cosine decay to a tenth", unit="steps", ge=0)
    weight_decay: float = key(0.1, "AdamW weight decay of matrices", ge=0)
    save_every: int = key(
        50, "steps between points from which a killed training resumes, besides the checkpoints", unit="steps", ge=1
    )

    @model_validator(mode="after")
    def _check(self) -> "Training":
        if "model_type" not in self.architecture:
            raise ValueError("architecture.model_type is missing; allowed: any transformers model type, e.g. gpt_neox")
        if sorted(set(self.steps)) != self.steps or self.steps[0] < 0:
            raise ValueError(f"steps must rise from 0 or more without repeats, got {self.steps}")
        return self


class Local(Block):
    """Checkpoints on disk: a Trainer's output folder, or a folder a revision."""

    kind: Literal["local"] = key(..., "checkpoint folders on disk")
    path: str = key(..., "folder pattern with `{step}`, e.g. runs/mine/checkpoint-{step}", pattern=r"\{step\}")
    tokenizer: str | None = key(None, "folder with a tokenizer.json; null takes the first checkpoint's folder")


Source = Annotated[Training | Local, Field(discriminator="kind")]
