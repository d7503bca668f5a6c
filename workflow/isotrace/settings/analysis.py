"""Config blocks for what is measured: capture, bases, energy, isotropy, geometry, frequency, attention, tests."""

from typing import Annotated, Literal, get_args

from pydantic import StringConstraints, model_validator

from isotrace.settings.base import Block, key

Site = Annotated[str, StringConstraints(pattern=r"^(embed|block\.\d+|final_norm)$")]
NullSpace = Literal["complement", "ambient", "variance_weighted"]
Metric = Literal[
    "mean_cosine",
    "mean_cosine_centred",
    "angular_distance",
    "sigma1_share",
    "sigma1_share_centred",
    "rankme",
    "spectral_entropy_rank",
    "alpha_req",
    "participation_ratio",
    "partition_ratio",
    "twonn",
    "mean_norm",
    "norm_drift",
    "max_over_median_norm",
    "zero_rows",
    "loss",
    "contact_exponent",
    "displacement_in_tangent",
    "gradient_order_tangent",
    "gradient_order_normal",
    "curvature_visibility",
]
FigureName = Literal[
    "energy_over_training",
    "isotropy_ablation",
    "early_late",
    "cosine_over_training",
    "cosine_by_depth",
    "loss_against_isotropy",
    "frequency_geometry",
    "attention_over_training",
    "attention_sinks",
    "toy",
    "rank_curve",
    "alternatives",
    "subspace_overlap",
    "component_tokens",
]
OFF: tuple[Metric, ...] = get_args(Metric)[-5:]
METRICS: list[Metric] = [m for m in get_args(Metric) if m not in OFF]


class Execution(Block):
    """How jobs run; results depend on the numbers of threads only through the last bits of sums."""

    numeric_threads: int = key(1, "BLAS and torch threads a job, whatever the cores granted", unit="threads", ge=1)
    train_threads: int = key(1, "torch threads of a training job", unit="threads", ge=1)
    batch_buckets: bool = key(False, "analyse all buckets of a checkpoint in one job instead of a job each")
    batch_audits: bool = key(
        False, "audit all checkpoints of a model in one job; a new one then audits and captures all of them again"
    )
    downloads: int = key(4, "files fetched from the hub at a time, over all jobs", unit="files", ge=1, le=32)
    device: Literal["auto", "cpu", "cuda"] = key(
        "auto", "where capture runs the model; auto: CUDA where there is one. Training is on the CPU"
    )


class Capture(Block):
    """One forward and backward pass over the sampled sequences."""

    dtype: Literal["float32", "bfloat16"] = key(
        "float32", "compute dtype of a whole series; float16 overflows and is refused"
    )
    batch_size: int = key(16, "sequences a pass; results do not depend on it", unit="sequences", ge=1)
    sites: list[Site] | None = key(
        None,
        "names among embed, block.I, final_norm; null: all up to 8 blocks, else six blocks and both ends",
    )
    moments_tokens: Literal["sample", "all"] = key(
        "sample",
        "moments of the cached rows, or of every position of every evaluation sequence, with sums by group of "
        "sequences; all also runs those sequences through the model",
    )
    weight_gradients: Literal["none", "moments", "matrices"] = key(
        "none",
        "gradients, by bucket, of the linear maps that read the residual stream: left out, their moments with bases "
        "of what the maps read, or the matrices as well",
    )


class Store(Block):
    """How rows are kept on disk."""

    dtype: Literal["float32", "float16", "bfloat16"] = key(
        "float32",
        "float16 has a power-of-two scale a row, bfloat16 is kept as float32 values; both record their largest error",
    )


class Bases(Block):
    """Tangent bases, fitted on activations of early checkpoints, fit sequences only."""

    methods: list[Literal["pca", "svd", "semi_nmf"]] = key(
        ["pca"], "how a tangent basis is fitted; svd is uncentred, semi_nmf reads rows", min_length=1
    )
    controls: list[Literal["random", "variance_weighted"]] = key(
        ["random"], "bases to compare with, fixed only: a random subspace, or one drawn by early variance"
    )
    kinds: list[Literal["fixed", "moving", "leave_one_out"]] = key(
        ["fixed", "moving", "leave_one_out"],
        "fixed: of all early checkpoints; moving: of each; leave_one_out: of the early ones but the one tested",
        min_length=1,
    )
    ranks: list[int] = key([8], "ranks k, at most half the width", unit="components", min_length=1)
    pool_center: Literal["global", "checkpoint"] = key(
        "global", "centre once over all early checkpoints (the movement of the mean is variance), or each"
    )
    pool_scale: Literal["none", "trace"] = key("none", "scale each checkpoint to unit trace before pooling, or not")
    early_fraction: float = key(0.3, "early: step / total_steps up to this", gt=0, lt=1)
    late_fraction: float = key(0.7, "late: step / total_steps from this", gt=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> "Bases":
        if sorted(set(self.ranks)) != self.ranks or self.ranks[0] < 1:
            raise ValueError(f"ranks must be positive and rising, got {self.ranks}")
        if self.early_fraction >= self.late_fraction:
            raise ValueError(f"early_fraction {self.early_fraction} must be below late_fraction {self.late_fraction}")
        return self


class Draws(Block):
    """Null subspaces drawn, B."""

    complement: int = key(999, "Haar subspaces orthogonal to the tangent", ge=1)
    ambient: int = key(999, "Haar subspaces of the whole space", ge=1)
    variance_weighted: int = key(199, "subspaces drawn by activation variance off the tangent", ge=1)


class Energy(Block):
    """Gradient energy in the tangent against matched-rank null subspaces."""

    null_spaces: list[NullSpace] = key(
        ["complement", "ambient", "variance_weighted"], "random subspaces to compare with; see draws", min_length=1
    )
    draws: Draws = key(Draws(), "draws a null, B; p-values go down to 1 / (B + 1)", unit="subspaces")
    centred: bool = key(False, "centre gradients before their second moment; activations always are")
    resamples: int = key(200, "bootstrap resamples of sequences, for intervals", ge=20)
    confidence: float = key(0.95, "level of the intervals", gt=0.5, lt=1)
    min_rows: int = key(32, "with fewer rows there is no number, but a reason", unit="tokens", ge=8)


class Controls(Block):
    """Energies under explanations other than the tangent; draws, intervals and rows as in the block energy."""

    outlier_dimensions: int = key(
        3, "coordinates of largest activation second moment that are dropped", unit="dimensions", ge=1
    )


class Isotropy(Block):
    """IsoScore*, corrected for sample size, whole and with subspaces removed."""

    ranks: list[int] = key([8], "ranks removed; a subset of bases.ranks", unit="components", min_length=1)
    null_spaces: list[Literal["complement", "ambient"]] = key(
        ["complement"], "where the removed random subspaces lie: outside the tangent, or anywhere", min_length=1
    )
    draws: int = key(999, "random subspaces removed, for plugin, star and ustat", unit="subspaces", ge=1)
    draws_corrected: int = key(99, "the first so many of them, for corrected", unit="subspaces", ge=1)
    estimators: list[Literal["plugin", "star", "ustat", "corrected"]] = key(
        ["plugin", "star", "ustat", "corrected"],
        "estimators of isotropy: published, shrunk, unbiased in f, jackknife of the latter",
        min_length=1,
    )
    c0: list[Literal["scaled_identity", "pooled", "identity", "ledoit_wolf"]] = key(
        ["scaled_identity", "pooled"], "what star shrinks toward"
    )
    shrinkage: float = key(0.1, "shrinkage z of star", ge=0, le=1)
    order: Literal["shrink_then_remove", "remove_then_shrink"] = key(
        "shrink_then_remove", "order of shrinking and removing, for star"
    )
    conventions: list[Literal["complement", "ambient"]] = key(
        ["complement", "ambient"], "what is left is scored in d - k or in d dimensions", min_length=1
    )
    outliers: list[Literal["kept", "dropped"]] = key(
        ["kept", "dropped"], "all rows, or without those whose norm is an outlier"
    )
    outlier_threshold: float = key(10.0, "robust z of log row norm beyond which a row is an outlier", gt=0)
    groups: int = key(20, "groups of sequences that the jackknife leaves out", unit="groups", ge=5)
    confidence: float = key(0.95, "level of the intervals", gt=0.5, lt=1)
    min_rows: int = key(32, "with fewer rows there is no number, but a reason", unit="tokens", ge=8)


class Geometry(Block):
    """Companion measures of a cloud of rows."""

    metrics: list[Metric] = key(
        METRICS,
        f"measures, one row each; off unless named: {', '.join(OFF)}",
        min_length=1,
    )
    max_rows_dimension: int = key(2000, "rows used by TwoNN and pairwise angles", unit="tokens", ge=100)
    groups: int = key(20, "groups of sequences that the jackknife leaves out", unit="groups", ge=5)
    confidence: float = key(0.95, "level of the intervals", gt=0.5, lt=1)
    min_rows: int = key(32, "with fewer rows there is no number, but a reason", unit="tokens", ge=8)


class Frequency(Block):
    """Token frequency against norm and distance to the centroid."""

    occurrences: int = key(
        8, "rows a type in contextual means, the same for all; types with fewer are left out", unit="tokens", ge=1
    )
    noise: Literal["equal_occurrences", "halves"] = key(
        "equal_occurrences",
        "contextual means of the same number of rows a type, or of all its rows in two halves whose noise cancels",
    )
    min_types: int = key(20, "with fewer types there is no number, but a reason", unit="types", ge=5)
    resamples: int = key(500, "bootstrap resamples of types", ge=20)
    confidence: float = key(0.95, "level of the intervals", gt=0.5, lt=1)


class Dynamics(Block):
    """Tests over training."""

    rank: int = key(8, "rank the tests, claims and figures read; one of bases.ranks", unit="components", ge=1)
    method: Literal["pca", "svd", "semi_nmf"] = key("pca", "method the tests, claims and figures read")
    null_space: Literal["complement", "ambient"] = key("complement", "null the tests, claims and figures read")
    resamples: int = key(500, "resamples for intervals of effects", ge=50)
    confidence: float = key(0.95, "level of the intervals", gt=0.5, lt=1)
    claims: str = key("config/claims.yaml", "declared claims; a path from the working directory, or the workflow's own")


Venue = Literal["icml", "icml-column", "neurips", "acl", "acl-column"]


class Figures(Block):
    """Which figures are drawn, and in which style."""

    names: list[FigureName] = key(list(get_args(FigureName)), "figures to draw, each a module of isotrace/figures")
    venue: Venue = key(
        "icml", "style of the figures, a file of isotrace/figures/styles: the conference's page or column width"
    )
