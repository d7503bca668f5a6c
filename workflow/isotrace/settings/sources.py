"""Config blocks for where checkpoints come from, one a kind of source."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from isotrace.settings.base import Block, key

REPO = r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.{}-]+$"


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
    label_smoothing: float = key(
        0.0, "share of each label that is spread evenly over the vocabulary while training", ge=0, lt=1
    )
    isotropy_weight: float = key(
        0.0, "weight w of w (1 - IsoScore*) of a batch in the loss; above 0 asks for isotropy, below 0 for anisotropy"
    )
    isotropy_shrinkage: float = key(0.1, "weight z of the scaled identity in that IsoScore*", ge=0, lt=1)
    isotropy_site: str = key(
        "final_norm", "the site whose rows that term takes", pattern=r"^(embed|block\.\d+|final_norm)$"
    )
    attention_scale: float = key(
        1.0, "factor of the attention logits while training; checkpoints hold it in their queries' weights", gt=0
    )
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


class Given(Block):
    """What exists already, whole or broken."""

    on_broken: Literal["skip", "error"] = key(
        "skip", "skip: a broken checkpoint ends in its reason and the rest goes on; error: its audit stops the run"
    )


class Stored(Given):
    """Checkpoints that exist already, from whatever place."""

    with_init: bool = key(
        False, "add an untrained step 0 of the series' own architecture, from the model's seed, where it has none"
    )


class Local(Stored):
    """Checkpoints on disk: a Trainer's output folder, or a folder a revision."""

    kind: Literal["local"] = key(..., "checkpoint folders on disk")
    path: str = key(..., "folder pattern with `{step}`, e.g. runs/mine/checkpoint-{step}", pattern=r"\{step\}")
    tokenizer: str | None = key(
        None,
        "folder with a tokenizer.json (of images and audio: preprocessor_config.json); null takes the first "
        "checkpoint's folder",
    )
    config: str | None = key(None, "folder with a config.json, for those checkpoints whose folders have none")


class Init(Block):
    """Untrained models, one a seed: the baseline without any training."""

    kind: Literal["init"] = key(..., "random weights, one model a seed")
    architecture: dict[str, Any] | None = key(
        None, "transformers config: `model_type` and its fields; null takes the config.json of `folder`"
    )
    folder: str | None = key(None, "folder with a config.json, whose architecture is taken; null: `architecture`")
    seeds: list[int] = key([0, 1], "seeds of the weights, rising; one checkpoint each", min_length=1)
    tokenizer: str | None = key(
        None,
        "folder with a tokenizer.json; null takes `folder`'s own, or with `architecture` trains one on the corpus; of "
        "images and audio a preprocessor_config.json, null makes one of the model's sizes; of bytes null takes ByT5's",
    )
    vocabulary: int = key(4096, "entries of a tokenizer that is trained here", unit="tokens", ge=300)

    @model_validator(mode="after")
    def _check(self) -> "Init":
        if (self.architecture is None) == (self.folder is None):
            raise ValueError("architecture or folder: name one of the two, the fields or the folder of a config.json")
        if self.architecture is not None and "model_type" not in self.architecture:
            raise ValueError("architecture.model_type is missing; allowed: any transformers model type, e.g. gpt_neox")
        if sorted(set(self.seeds)) != self.seeds or self.seeds[0] < 0:
            raise ValueError(f"seeds must rise from 0 or more without repeats, got {self.seeds}")
        return self


class Gguf(Stored):
    """One checkpoint in a GGUF file, its quantised weights read as float32."""

    kind: Literal["gguf"] = key(..., "one GGUF file")
    path: str = key(..., "the file, e.g. models/mine.Q4_1.gguf")
    step: int = key(..., "the step it was saved at", unit="steps", ge=1)
    tokenizer: str | None = key(None, "folder with a tokenizer.json; null reads the tokenizer from the file")


class Take(Block):
    """Which of the labels found; none of the keys, or `take: all`, is all of them."""

    every: int | None = key(None, "every n-th from the first, and the last", ge=2)
    log: int | None = key(
        None, "so many, evenly spaced in the logarithm of the step, with step 0", unit="checkpoints", ge=2
    )
    steps: list[int] | None = key(None, "these steps", unit="steps", min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _all(cls, value: Any) -> Any:
        return {} if value == "all" else value

    @model_validator(mode="after")
    def _check(self) -> "Take":
        given = [name for name in ("every", "log", "steps") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"one of every, log and steps, got {given}")
        return self


class Revisions(Block):
    """Which revisions are checkpoints, and which of them are taken; only `labels` needs `isotrace resolve` again."""

    labels: str = key(
        "generic",
        "naming of the branches and tags (or repos): pythia, smollm, olmo, olmo2, multibert, trainer, generic, or a "
        "regular expression with the group `step` and, if they have them, `tokens`, `stage`",
    )
    take: Take = key(Take(), Take.__doc__ or "")
    max: int | None = key(None, "leave out later steps", unit="steps", ge=1)


class HubTokenizer(Block):
    """A tokenizer in another repo."""

    repo: str = key(..., "its repo, ORG/NAME", pattern=REPO)
    revision: str = key("main", "branch, tag or commit")
    subfolder: str | None = key(None, "folder inside the repo")


class Hub(Stored):
    """A series on the Hugging Face hub, resolved to commits by `isotrace resolve` and fetched by rule `prefetch`."""

    kind: Literal["hub"] = key(..., "revisions of a repo, or repos, on the Hugging Face hub")
    repo: str = key(..., "ORG/NAME; with `{step}` in NAME, a repo a checkpoint", pattern=REPO)
    revisions: Revisions = key(Revisions(), Revisions.__doc__ or "")
    subfolder: str | None = key(None, "folder inside the repo that holds a checkpoint's files")
    tokenizer: HubTokenizer | None = key(
        None,
        "`repo`, `revision` and `subfolder` of the tokenizer, of images and audio the processor; null takes the last "
        "checkpoint's own",
    )
    series: str = key("config/series/{model}.json", "the file of commits and hashes that `isotrace resolve` writes")
    clean: Literal["never", "after_capture"] = key(
        "never", "after_capture: weights are removed once captured, and fetched again when something needs them"
    )
    remote_code: str | None = key(
        None,
        "commit of `repo` whose Python code loads every checkpoint and the tokenizer, for models that transformers "
        "does not know; null: no code of a model's own is ever run",
        pattern=r"^[0-9a-f]{40}$",
    )

    @model_validator(mode="after")
    def _check(self) -> "Hub":
        if self.remote_code is not None and "{step}" in self.repo:
            raise ValueError("remote_code: a commit is of one repo, and here each checkpoint has its own")
        if self.remote_code is not None and self.with_init:
            raise ValueError("remote_code: code of a model's own loads stored weights only; leave with_init out")
        return self


class Arrays(Block):
    """What the arrays of a dump are called."""

    activations: str = key(..., "vectors (site, token, feature), or (token, feature) of one site; floating point")
    gradients: str | None = key(None, "of the loss with respect to them, the same shape; null: there are none")
    token_id: str | None = key(None, "ids of the tokens read, (token,); null: one bucket, `all`")
    sequence: str | None = key(None, "which sequence each row was read in, (token,); see `rows_independent`")
    position: str | None = key(None, "position in its sequence, (token,); null: the order of its rows")
    target_id: str | None = key(None, "ids of the tokens predicted, (token,), -1 for none")
    loss: str | None = key(None, "loss of each row in nats, (token,), NaN for none")
    split: str | None = key(
        None, "0 for fit and 1 for eval, (token,); null: sequences are dealt by the seeded hash (tokens.eval_fraction)"
    )


class Vectors(Given):
    """Vectors that something else has dumped, a file or folder a checkpoint; no model is loaded."""

    kind: Literal["vectors"] = key(..., "dumped activations and gradients")
    path: str = key(
        ...,
        "pattern with `{step}` of the dumps, each a folder of .npy files, a .npz, a .safetensors or a .zarr folder",
        pattern=r"\{step\}",
    )
    arrays: Arrays = key(..., Arrays.__doc__ or "")
    sites: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]] | None = key(
        None, "names of the sites, shallow to deep; null: block.0, block.1 and so on", min_length=1
    )
    rows_independent: bool = key(
        False, "without `arrays.sequence`: each row is a sequence of its own, as rows of one text are not"
    )
    tokenizer: str | None = key(None, "folder of the ids' tokenizer; null: no id is special, and ids have no text")
    counts: str | None = key(None, "a .npy of token counts by id, (id,), for buckets; null: counted in the dump")

    @model_validator(mode="after")
    def _check(self) -> "Vectors":
        if self.arrays.sequence is None and not self.rows_independent:
            raise ValueError(
                "arrays.sequence: name the array that says which sequence each row was read in: rows of one text are "
                "alike, so fit and eval share no sequence and intervals resample whole ones; or, if no two rows share "
                "a text, rows_independent: true"
            )
        if self.arrays.sequence is not None and self.rows_independent:
            raise ValueError("rows_independent: true, but arrays.sequence says what the rows share; leave one out")
        if self.counts is not None and self.arrays.token_id is None:
            raise ValueError("counts: counts of ids, but arrays.token_id names none")
        if self.sites is not None and len(set(self.sites)) < len(self.sites):
            raise ValueError(f"sites: each once, got {self.sites}")
        return self


Source = Annotated[Training | Local | Init | Gguf | Hub | Vectors, Field(discriminator="kind")]
