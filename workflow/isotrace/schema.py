"""The columns of every table: order, type, unit, and which of them identify a row.

The names are the public contract (our choice); quantities are defined where they are computed.
"""

from dataclasses import dataclass, replace
from typing import Literal

from isotrace.errors import DataError

Kind = Literal["text", "integer", "real"]
Scope = Literal["study", "checkpoint", "model"]


@dataclass(frozen=True)
class Column:
    """One column; ``key`` columns identify the row, ``nullable`` ones may be empty without a reason."""

    name: str
    kind: Kind
    unit: str = "1"
    key: bool = False
    nullable: bool = False


def _keys(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "text", "", key=True) for name in names)


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "text", "") for name in names)


def _reals(*names: str, unit: str = "1") -> tuple[Column, ...]:
    return tuple(Column(name, "real", unit) for name in names)


def _count(name: str, unit: str, *, key: bool = False) -> Column:
    return Column(name, "integer", unit, key=key)


# Known only once a result is set beside its series: a checkpoint's own files never hold these.
JOINED = ("study", "model", "seed", "checkpoint", "step", "tokens_seen", "progress", "phase")
_RUN = (
    *_keys("study", "model"),
    Column("seed", "integer", "", nullable=True),
    *_keys("checkpoint"),
    _count("step", "optimizer steps"),
    Column("tokens_seen", "real", "tokens", nullable=True),
    Column("progress", "real", "share of total steps"),
    *_texts("phase"),
)
# Of a row that belongs to no single checkpoint, what a checkpoint would say is empty.
_ANY_RUN = tuple(replace(c, nullable=True) if c.name in ("step", "progress") else c for c in _RUN)
_PLACE = (*_keys("site"), Column("layer", "integer", "block index", nullable=True))
_HEAD = (
    *(c for c in _RUN if c.name not in ("study", "tokens_seen")),
    *(_count("layer", "block index", key=True), _count("head", "head index", key=True)),
    *_keys("query_bucket", "key_bucket"),
)
_REASON = _texts("reason")

SCHEMAS: dict[str, tuple[Column, ...]] = {
    "energy": (
        *(*_RUN, *_PLACE),
        *_keys("bucket", "quantity", "basis", "method"),
        _count("rank", "directions", key=True),
        _count("n_tokens", "tokens"),
        *_reals("energy", "energy_lo", "energy_hi", unit="share of trace"),
        *_reals("enrichment", unit="multiple of k/d"),
        *_keys("null_space"),
        *_reals("null_mean", "null_mean_exact", "null_sd_exact", unit="share of trace"),
        *_reals("ratio", unit="multiple of the null's mean"),
        *_reals("z", unit="null standard deviations"),
        *_reals("p_value", unit="probability"),
        _count("n_nulls", "draws"),
        *_REASON,
    ),
    "isotropy": (
        *(*_RUN, *_PLACE),
        *_keys("bucket", "quantity", "basis", "method"),
        _count("rank", "directions", key=True),
        _count("n_tokens", "tokens"),
        *_keys("estimator", "c0"),
        Column("shrinkage", "real", "1", nullable=True),
        *_keys("convention", "outliers"),
        *_reals("score", "score_lo", "score_hi", "score_without_tangent", unit="IsoScore"),
        *_keys("null_space"),
        *_reals("score_without_normal_mean", "score_without_normal_lo", "score_without_normal_hi", unit="IsoScore"),
        *_reals("delta_tangent", "delta_normal", unit="IsoScore"),
        *_reals("p_value", unit="probability"),
        _count("n_nulls", "draws"),
        *_reals("anisotropy_share", unit="share"),
        *_REASON,
    ),
    "geometry": (
        *(*_RUN, *_PLACE),
        *_keys("bucket", "quantity"),
        _count("n_tokens", "tokens"),
        *_keys("metric"),
        *_reals("value", "lo", "hi", unit="of the metric"),
        *_REASON,
    ),
    "controls": (
        *(*_RUN, *_PLACE),
        *_keys("bucket", "quantity", "basis", "method"),
        _count("rank", "directions", key=True),
        _count("n_tokens", "tokens"),
        *_reals("ratio", "ratio_variance_weighted", unit="multiple of the null's mean"),
        *_reals("ratio_mean_removed", "ratio_outliers_dropped", unit="multiple of the null's mean"),
        *_reals("ratio_loss_balanced", unit="multiple of the null's mean"),
        *_reals("n_effective", unit="tokens"),
        *_reals("ratio_moving", unit="multiple of the null's mean"),
        *_reals("optimism", "optimism_lo", "optimism_hi", unit="share of trace"),
        _count("leaked", "tokens"),
        *_REASON,
    ),
    "rank_curve": (
        *(*_RUN, *_PLACE),
        *_keys("bucket", "quantity", "basis", "method"),
        _count("n_tokens", "tokens"),
        *_keys("statistic"),
        _count("rank", "directions", key=True),
        *_reals("value", "lo", "hi", "isotropic", unit="share of trace; directions for rank_50 and rank_90"),
        *_REASON,
    ),
    "frequency": (
        *(*_RUN, *_PLACE),
        *_keys("kind", "of"),
        _count("n_types", "token types"),
        *_reals("spearman", "lo", "hi", unit="rank correlation"),
        *_REASON,
    ),
    "frequency_points": (
        *_keys("model", "checkpoint"),
        _count("step", "optimizer steps"),
        _count("token_id", "token id", key=True),
        _count("count", "occurrences"),
        *_reals("norm", "centroid_distance", unit="norm of an embedding"),
    ),
    "attention": (
        *_HEAD,
        *_reals("mean_norm_q", "mean_norm_k", unit="norm of a query or key"),
        *_reals("drift_q", "drift_k", unit="share of the mean norm"),
        *_reals("mean_cosine_qk", unit="cosine"),
        *_reals("mean_dot_qk", unit="squared norm"),
        *_reals("k_sign", unit="sign"),
        *_reals("sigma1_share_q", unit="share of trace"),
        *_reals("entropy", unit="share of log(visible keys)"),
        *_reals("max_weight", unit="attention weight"),
        *_reals("logit_sd", unit="logits"),
        *_REASON,
    ),
    "attention_intervals": (
        *_HEAD,
        *_keys("column"),
        *_reals("value", "lo", "hi", unit="of the column of table attention"),
        *_REASON,
    ),
    "attention_mass": (
        *_HEAD,
        *_reals("mass", unit="attention weight"),
        *_reals("share", unit="share of visible keys"),
        *_reals("log_ratio", "lo", "hi", unit="natural log of mass / share"),
        *_REASON,
    ),
    "subspaces": (
        *(*_ANY_RUN, *_PLACE),
        *_keys("comparison", "method", "other"),
        _count("rank", "directions", key=True),
        *_reals("overlap", unit="mean squared cosine"),
        *_reals("angle_min", "angle_max", unit="degrees"),
        *_reals("haar_mean", "haar_sd", unit="mean squared cosine"),
        *_reals("z", unit="Haar standard deviations"),
        *_reals("p_value", unit="probability"),
        _count("n_nulls", "draws"),
        *_REASON,
    ),
    "components": (
        *_keys("model", "checkpoint"),
        _count("step", "optimizer steps"),
        *_PLACE,
        *_keys("method"),
        _count("component", "rank by variance", key=True),
        *_reals("explained_variance", unit="squared norm of an activation"),
        *_keys("sign"),
        _count("order", "place from the end", key=True),
        _count("token_id", "token id"),
        *_texts("token", "bucket"),
        *_reals("score", unit="standard deviations of a row's projection"),
        _count("n_occurrences", "rows"),
        *_REASON,
    ),
    "untrained": (
        *_RUN[:3],
        _count("draw", "seed of the weights", key=True),
        *(*_PLACE, *_keys("bucket", "metric")),
        *(_count("n_tokens", "tokens"), *_reals("value", "lo", "hi", unit="of the metric"), *_REASON),
    ),
    "toy": (
        Column("input_cosine", "real", "cosine", key=True),
        Column("qk_scale", "real", "factor on queries times keys", key=True),
        *_keys("component", "pairs"),
        *_reals("cosine", "lo", "hi", "expected", unit="cosine"),
        _count("n_seeds", "blocks"),
        *_REASON,
    ),
    "dynamics": (
        *_keys("family", "test", "unit", "model", "site", "bucket", "quantity", "statistic"),
        *_reals("effect", "lo", "hi", unit="of the statistic"),
        _count("n", "checkpoints or runs"),
        *_reals("p_min", "p_value", "p_adjusted", unit="probability"),
        *_texts("method", "note"),
    ),
    "claims": (
        *_keys("claim"),
        *_texts("source", "quantity"),
        *_keys("model"),
        *_texts("aggregate", "expected"),
        *_reals("estimate", "lo", "hi", unit="of the aggregate"),
        *_reals("p_adjusted", unit="probability"),
        *_texts("verdict", "note"),
    ),
    "audit": (
        *_keys("model", "checkpoint"),
        Column("step", "integer", "optimizer steps", nullable=True),
        *_keys("finding"),
        *_texts("severity"),
        *_keys("detail"),
    ),
}


def columns(stage: str, *, scope: Scope = "study") -> tuple[Column, ...]:
    """A table's columns in order; at scope ``checkpoint`` without those that only the series knows.

    At scope ``model``, one file for all checkpoints, rows name theirs.
    """
    if stage not in SCHEMAS:
        raise DataError(f"no table is called {stage!r}; tables are {', '.join(sorted(SCHEMAS))}")
    unknown = () if scope == "study" else tuple(n for n in JOINED if scope == "checkpoint" or n != "checkpoint")
    return tuple(c for c in SCHEMAS[stage] if c.name not in unknown)


def keys_of(stage: str) -> tuple[str, ...]:
    """The columns that identify a row within a study."""
    return tuple(c.name for c in columns(stage) if c.key and c.name != "study")
