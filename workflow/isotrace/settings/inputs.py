"""Config blocks for what goes in: models, tokens, buckets, sampled positions."""

from typing import Literal

from pydantic import model_validator

from isotrace.settings.base import Block, Slug, key
from isotrace.settings.sources import Source

Objective = Literal["clm", "mlm", "none"]
Modality = Literal["text", "image", "audio", "bytes"]


class Modules(Block):
    """Paths of modules in the loaded model, as `model.named_modules()` gives them."""

    embed: str = key(..., "the input embedding, e.g. transformer.wte")
    blocks: str = key(..., "the list of blocks, e.g. transformer.h")
    final_norm: str | None = key(None, "the norm after the last block, e.g. transformer.ln_f; null where there is none")


class Model(Block):
    """One series of checkpoints."""

    source: Source = key(..., "where the checkpoints come from")
    objective: Objective = key(
        ...,
        "clm: next-token cross-entropy; mlm: masked cross-entropy; none: vectors of another or no loss, images, audio",
    )
    modality: Modality = key(
        "text",
        "what it reads: text; bytes (as ByT5, or, with objective none, characters, as CANINE); image or "
        "audio, without a tokenizer",
    )
    corpus: Slug | None = key(None, "name of a corpus; null takes the only one")
    modules: Modules | None = key(
        None, "where a family's sites are, when it is not among those that are found; see the README"
    )
    total_steps: int | None = key(
        None, "length of training, of which early and late are shares; null: the last stored step", unit="steps", ge=1
    )
    tokens_per_step: int | None = key(
        None, "tokens a step, for the column tokens_seen of local series; null: unknown", unit="tokens", ge=1
    )
    seed: int | None = key(
        None, "seed of the run: of training here, and the column `seed`; null takes the study's", ge=0
    )
    seeds: list[int] | None = key(
        None,
        "runs of these seeds, rising, as models NAME-seed0, NAME-seed1, ... and as one group in tests, claims and "
        "figures; of stored series, `{seed}` in repo or path stands for each",
        min_length=1,
    )

    @property
    def task(self) -> str:
        """The objective; of what has no loss of text image, audio, or (bytes without an objective) characters."""
        if self.modality == "bytes" and self.objective == "none":
            return "characters"
        return self.modality if self.modality in ("image", "audio") else self.objective

    @model_validator(mode="after")
    def _check(self) -> "Model":
        if self.seeds is None:
            return self
        if self.seed is not None:
            raise ValueError(f"seed {self.seed} and seeds {self.seeds}: give one of the two")
        if sorted(set(self.seeds)) != self.seeds or self.seeds[0] < 0:
            raise ValueError(f"seeds must rise from 0 or more without repeats, got {self.seeds}")
        return self


class Tokens(Block):
    """From text to packed sequences, divided once into fit and eval."""

    sequence_length: int = key(128, "tokens a sequence, packed without padding", unit="tokens", ge=8)
    add_bos: bool = key(False, "start every sequence with the tokenizer's BOS (or CLS)")
    separate_documents: bool = key(True, "put the end-of-text (or separator) token after each document")
    eval_fraction: float = key(
        0.2, "share of sequences, by a seeded hash, that is never trained or fitted on", gt=0, lt=1
    )
    max_sequences: int | None = key(None, "use the first so many sequences; null uses all", unit="sequences", ge=8)


class Buckets(Block):
    """Token-frequency buckets, b0 the most frequent; of images and audio by energy, b0 the least, or one, `all`."""

    kind: Literal["mass", "rank", "count", "energy"] = key(
        "mass",
        "edges on shares of the tokens (mass), on the frequency rank, or on counts; energy: quantiles of the energy of "
        "patches and frames, for models of images and audio alone",
    )
    number: int = key(4, "number of buckets, when no edges are given", unit="buckets", ge=1, le=64)
    edges: list[float] | None = key(
        None, "inner edges: rising ranks (rank), rising shares of the tokens (mass), falling counts (count)"
    )
    by: Literal["input", "target"] = key(
        "input", "whose frequency counts: the token read, or (next-token models) the token predicted"
    )

    @model_validator(mode="after")
    def _check(self) -> "Buckets":
        edges = self.edges
        if edges is None:
            if self.kind == "count":
                raise ValueError("edges: kind count needs falling counts, e.g. [1000, 100, 10]")
            return self
        if self.kind == "energy":
            raise ValueError("edges: kind energy takes quantiles; give their number instead")
        ordered = sorted(set(edges), reverse=self.kind == "count")
        within = all(edge > 0 and (self.kind != "mass" or edge < 1) for edge in edges)
        if not edges or edges != ordered or not within:
            allowed = {
                "mass": "rising shares between 0 and 1",
                "rank": "rising ranks above 0",
                "count": "falling counts",
            }
            raise ValueError(f"edges: {edges} are not {allowed[self.kind]}")
        return self


class Rows(Block):
    """How many of something the fit and eval parts hold."""

    fit: int = key(64, "for fitting bases", ge=1)
    eval: int = key(128, "for everything that is tested", ge=1)


class Sample(Block):
    """The positions read at every checkpoint of a model."""

    sequences: Rows = key(Rows(fit=64, eval=128), "sequences run through the model", unit="sequences")
    rows_per_bucket: Rows = key(Rows(fit=512, eval=1024), "positions kept a bucket, at most", unit="tokens")
    exclude_first: bool = key(True, "leave out position 0, where a sink often sits")


class Masking(Block):
    """Masks of a masked language model, drawn from (seed, sequence), the same at every checkpoint."""

    rate: float = key(0.3, "share of a sequence's ordinary positions that is masked, at least one", gt=0, lt=1)
    replace: list[float] = key(
        [0.8, 0.1, 0.1],
        "shares of masked positions shown as [MASK], as a random token, unchanged",
        min_length=3,
        max_length=3,
    )
    draws: int = key(1, "independent masks a sequence", unit="masks", ge=1)

    @model_validator(mode="after")
    def _check(self) -> "Masking":
        if abs(sum(self.replace) - 1) > 1e-9 or min(self.replace) < 0:
            raise ValueError(f"replace must be three shares that sum to 1, got {list(self.replace)}")
        return self
