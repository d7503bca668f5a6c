"""What is tested and claimed, as declared in a committed file before any run, checked word by word.

The vocabulary is our choice; nothing heavy is imported, so that a config can be checked while it is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from isotrace.errors import ConfigError
from isotrace.schema import keys_of

MEASURES = (
    "energy.ratio",
    "energy.enrichment",
    "isotropy.score",
    "isotropy.delta_tangent",
    "isotropy.draws_reaching",
    "isotropy.anisotropy_share",
    "geometry.value",
    "frequency.spearman",
    "attention.drift_q",
    "attention.drift_k",
    "attention.mean_cosine_qk",
    "attention.sharpness",
    "attention_intervals.value",
    "attention_intervals.one_minus",
    "attention_intervals.magnitude",
    "attention_mass.log_ratio",
    "dynamics.effect",
)
REDUCTIONS = ("geometric_mean", "mean", "max", "min", "bootstrap_mean")
SELECTORS = {
    "sites": ("all", "embed", "blocks", "first_block", "last_block", "final_norm"),
    "checkpoints": ("all", "untrained", "trained", "training", "first", "last", "early", "late"),
    "buckets": ("all", "most_frequent", "less_frequent"),
}
TESTS = ("trend", "early_late", "ordered_buckets", "change_point", "mixed", "shared_run", "correlation")
SERIES = ("model", "checkpoint", "site", "bucket", "layer", "head")
APART = ("head", "query_bucket", "key_bucket")
DEFAULTED = ("rank", "method", "null_space")
COMPARISONS = ("none", "difference", "log_ratio")

Comparison = Literal["none", "difference", "log_ratio"]
Reduction = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Expected:
    """``> 10`` and the like: what the whole interval must satisfy."""

    text: str
    upward: bool
    strict: bool
    bound: float

    def holds(self, value: float) -> bool:
        """Whether one value satisfies the expectation."""
        if value == self.bound:
            return not self.strict
        return value > self.bound if self.upward else value < self.bound


@dataclass(frozen=True)
class Side:
    """Which cells of a measure are read, and how they become one number a model."""

    models: Mapping[str, tuple[str, ...]]
    where: Mapping[str, tuple[Any, ...]]
    select: Mapping[str, str]
    reduce: tuple[Reduction, ...]


@dataclass(frozen=True)
class Claim:
    """One statement; ``right`` is set against ``left`` unless ``compare`` is none."""

    claim: str
    sentence: str
    source: str
    measure: str
    left: Side
    right: Side | None
    compare: Comparison
    then: tuple[Reduction, ...]
    expected: Expected


@dataclass(frozen=True)
class Family:
    """Series tested together; ``against`` and ``lag`` (checkpoints) are for the test ``correlation``.

    ``apart`` (head, query_bucket or key_bucket; "" for none): what tells series of attention apart beside the layer.
    """

    name: str
    measure: str
    where: Mapping[str, tuple[Any, ...]]
    tests: tuple[str, ...]
    against: tuple[str, Mapping[str, tuple[Any, ...]]] | None
    lag: int
    apart: str = ""


def _one_of(value: Any, allowed: tuple[str, ...], path: str) -> str:
    if value not in allowed:
        raise ConfigError(f"{path}: {value!r} is not one of {', '.join(allowed)}")
    return str(value)


def _mapping(value: Any, path: str, known: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path}: {value!r} is not a mapping")
    for key in value if known else ():
        _one_of(key, known or (), f"{path}: key")
    return value


def _lists(value: Any, path: str, known: tuple[str, ...] | None = None) -> dict[str, tuple[Any, ...]]:
    return {k: tuple(v) if isinstance(v, list) else (v,) for k, v in _mapping(value, path, known).items()}


def _reductions(value: Any, path: str) -> tuple[Reduction, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{path}: {value!r} is not a list of steps such as {{max: [checkpoint]}}")
    steps: list[Reduction] = []
    for i, step in enumerate(value):
        if len(_mapping(step, f"{path}[{i}]")) != 1:
            raise ConfigError(f"{path}[{i}]: a step has exactly one aggregate, got {list(step)}")
        name, over = next(iter(step.items()))
        _one_of(name, REDUCTIONS, f"{path}[{i}]: aggregate")
        if not isinstance(over, list) or not over:
            raise ConfigError(f"{path}[{i}].{name}: {over!r} is not a list of columns")
        steps.append((name, tuple(over)))
    return tuple(steps)


def _expected(value: Any, path: str) -> Expected:
    match = re.fullmatch(r"\s*([<>])(=?)\s*(-?\d+(?:\.\d+)?)\s*", str(value))
    if not match:
        raise ConfigError(f"{path}: {value!r} is not a comparison such as '> 10' or '<= 0'")
    return Expected(str(value).strip(), match[1] == ">", match[2] == "", float(match[3]))


def _side(shared: Mapping[str, Any], own: Mapping[str, Any], path: str) -> Side:
    models = own.get("models", shared.get("models", "all"))
    select = {**shared.get("select", {}), **own.get("select", {})}
    for kind, name in _mapping(select, f"{path}.select", tuple(SELECTORS)).items():
        _one_of(name, SELECTORS[kind], f"{path}.select.{kind}")
    where = {**_mapping(shared.get("where", {}), f"{path}.where"), **_mapping(own.get("where", {}), f"{path}.where")}
    return Side(
        models={} if models == "all" else _lists(models, f"{path}.models", ("objective", "name")),
        where=_lists(where, f"{path}.where"),
        select=select,
        reduce=_reductions(own.get("reduce", shared.get("reduce", [])), f"{path}.reduce"),
    )


def _check_fixed(where: Mapping[str, tuple[Any, ...]], measure: str, free: set[str], path: str) -> None:
    """Every key column of the measure's table that is not ``free`` has one value, by ``where`` or by the config."""
    known = keys_of(measure.split(".")[0])
    for column in where:
        _one_of(column, known, f"{path}: column of {measure}")
    fixed = {column for column, values in where.items() if len(values) == 1}
    if "star" not in where.get("estimator", ()):
        # Only star shrinks toward something; the other estimators have one row whatever c0.
        fixed.add("c0")
    loose = [c for c in known if c not in {*free, *fixed, *DEFAULTED}]
    if loose:
        raise ConfigError(f"{path}: {loose} of {measure} must be reduced over, or fixed in where")


def _check_columns(side: Side, then: tuple[Reduction, ...], measure: str, path: str) -> None:
    known = keys_of(measure.split(".")[0])
    reduced = [column for _, over in (*side.reduce, *then) for column in over]
    selected = {"sites": "site", "buckets": "bucket", "checkpoints": "checkpoint"}
    for column in (*reduced, *(selected[kind] for kind in side.select)):
        _one_of(column, known, f"{path}: column of {measure}")
    for column in reduced:
        if reduced.count(column) > 1:
            raise ConfigError(f"{path}: {column} is reduced over twice")
    _check_fixed(side.where, measure, {"model", *reduced}, path)


def _claim(entry: Any, path: str) -> Claim:
    known = ("claim", "sentence", "source", "measure", "expected", "models", "where", "select", "reduce")
    fields = _mapping(entry, path, (*known, "left", "right", "compare", "then"))
    for key in ("claim", "sentence", "source", "measure", "expected"):
        if key not in fields:
            raise ConfigError(f"{path}.{key}: missing")
    path = f"claims.{fields['claim']}"
    compare = _one_of(fields.get("compare", "none"), COMPARISONS, f"{path}.compare")
    if (compare == "none") == ("right" in fields):
        raise ConfigError(f"{path}.compare: {compare!r}; a comparison and right need each other")
    measure = _one_of(fields["measure"], MEASURES, f"{path}.measure")
    then = _reductions(fields.get("then", []), f"{path}.then")
    sides = {}
    for name in ("left", "right"):
        own = _mapping(fields.get(name, {}), f"{path}.{name}", ("models", "where", "select", "reduce"))
        sides[name] = _side(fields, own, f"{path}.{name}" if name in fields else path)
        _check_columns(sides[name], then, measure, f"{path}.{name}" if name in fields else path)
    return Claim(
        claim=str(fields["claim"]),
        sentence=str(fields["sentence"]),
        source=_one_of(fields["source"], ("tangent_paper", "attention_paper", "isotrace"), f"{path}.source"),
        measure=measure,
        left=sides["left"],
        right=None if compare == "none" else sides["right"],
        compare=compare,  # type: ignore[arg-type]
        then=then,
        expected=_expected(fields["expected"], f"{path}.expected"),
    )


def claims(declared: Mapping[str, Any]) -> tuple[Claim, ...]:
    """The claims of a declared file. ConfigError naming the claim and the word that is not in the vocabulary."""
    found = tuple(_claim(entry, f"claims[{i}]") for i, entry in enumerate(declared.get("claims", [])))
    names = [claim.claim for claim in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"claims.{name}: declared {names.count(name)} times")
    return found


def families(declared: Mapping[str, Any]) -> tuple[Family, ...]:
    """The families of a declared file, in its order. ConfigError as for ``claims``."""
    found = []
    for name, entry in _mapping(declared.get("families", {}), "families").items():
        path = f"families.{name}"
        fields = _mapping(entry, path, ("measure", "where", "tests", "against", "lag", "apart"))
        tests = tuple(_one_of(t, TESTS, f"{path}.tests") for t in fields.get("tests", []))
        against = None
        if "against" in fields:
            other = _mapping(fields["against"], f"{path}.against", ("measure", "where"))
            measure = _one_of(other.get("measure"), MEASURES, f"{path}.against.measure")
            against = (measure, _lists(other.get("where", {}), f"{path}.against.where"))
        if not tests or ("correlation" in tests) != (against is not None):
            raise ConfigError(f"{path}.tests: {list(tests)}; correlation needs against, and nothing else does")
        measure = _one_of(fields.get("measure"), MEASURES, f"{path}.measure")
        where = _lists(fields.get("where", {}), f"{path}.where")
        allowed = tuple(key for key in APART if key in keys_of(measure.split(".")[0]))
        apart = _one_of(fields["apart"], allowed, f"{path}.apart") if "apart" in fields else ""
        _check_fixed(where, measure, {*SERIES, apart}, path)
        if against:
            _check_fixed(against[1], against[0], set(SERIES), path)
        found.append(Family(name, measure, where, tests, against, int(fields.get("lag", 0)), apart))
    return tuple(found)
