"""Verdicts on what was expected before the run, from the tables alone.

Supported when the whole interval satisfies the expectation, contradicted when the whole interval fails it,
undecided otherwise (our rule); claims and their sources are in the declared file.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from isotrace.dynamics.cells import Resampling, compare, reduce, select, unmet
from isotrace.dynamics.contrasts import MIN_RUNS, across_runs
from isotrace.dynamics.declared import Claim, Reduction, Side
from isotrace.dynamics.declared import claims as parse
from isotrace.dynamics.measures import MEASURES, Tables, cells, missing_cells
from isotrace.dynamics.multiplicity import benjamini_hochberg
from isotrace.dynamics.table import defaults
from isotrace.schema import columns
from isotrace.seeding import generator
from isotrace.tables import finish


def _steps(steps: tuple[Reduction, ...]) -> str:
    return ", then ".join(f"{name.replace('_', ' ')} over {', '.join(over)}" for name, over in steps)


def _kept(side: Side) -> str:
    chosen = [name.replace("_", " ") for name in side.select.values() if name != "all"]
    words = [*chosen, *(f"{k} {'/'.join(map(str, v))}" for k, v in side.where.items())]
    models = "/".join(str(v) for values in side.models.values() for v in values) or "every model"
    return f"{_steps(side.reduce) or 'cells'} of {models} ({', '.join(words)})"


def aggregate(claim: Claim) -> str:
    """What a claim computes, in words."""
    text = _kept(claim.left)
    if claim.right:
        sign = {"difference": "minus", "log_ratio": "over (natural log)"}[claim.compare]
        text = f"{text} {sign} {_kept(claim.right)}"
    return f"{text}, then {_steps(claim.then)}" if claim.then else text


def _read(claim: Claim, side: Side, tables: Tables, spec: Mapping[str, Any]) -> pd.DataFrame:
    """The cells of the models that a side is about, before any is selected."""
    found = cells(claim.measure, tables, side.where, defaults(spec))
    lost = missing_cells(claim.measure, tables, found)
    found = pd.concat([found, lost], ignore_index=True) if len(lost) else found
    objective = found["model"].map(spec["objectives"])
    for by, values in side.models.items():
        found = found[(found["model"] if by == "name" else objective.loc[found.index]).isin(list(values))]
    return found


def _side(claim: Claim, side: Side, tables: Tables, spec: Mapping[str, Any], how: Resampling) -> pd.DataFrame:
    found = select(_read(claim, side, tables, spec), side.select)
    reduced = [column for _, over in (*side.reduce, *claim.then) for column in over]
    return reduce(found, side.reduce, list(dict.fromkeys(["model", *reduced])), how)


def estimates(claim: Claim, tables: Tables, spec: Mapping[str, Any]) -> pd.DataFrame:
    """One row a model, or a single one where models are reduced over: estimate, lo, hi, missing, at."""
    how = Resampling(spec["seed"], spec["resamples"], spec["confidence"])
    found = _side(claim, claim.left, tables, spec, how)
    if claim.right is not None:
        found = compare(found, _side(claim, claim.right, tables, spec, how), claim.compare, ["model", *_then(claim)])
    if not claim.then:
        return found
    keys = [k for k in ("model", *_then(claim)) if k in found]
    if claim.right is not None:
        found = found.assign(missing=found["missing"] + found["missing_right"])
    return reduce(found, claim.then, keys, how)


def _then(claim: Claim) -> list[str]:
    return [column for _, over in claim.then for column in over]


def _could_overturn(claim: Claim, found: str, missing: tuple[int, int]) -> bool:
    """Whether a cell that a peak passed over, left or right, could move the value against the verdict ``found``."""
    raising_harms = (found == "contradicted") == claim.expected.upward
    # A missing cell can only raise a maximum and lower a minimum; on the right, that moves the value the other way.
    for side, lost, raising in ((claim.left, missing[0], "max"), (claim.right, missing[1], "min")):
        peaks = [name for name, _ in side.reduce if name in ("max", "min")] if side else []
        if lost and peaks and (peaks[-1] == raising) == raising_harms:
            return True
    return False


def verdict(
    claim: Claim, estimate: float, lo: float, hi: float, missing: tuple[int, int] = (0, 0)
) -> tuple[str, list[str]]:
    """supported, contradicted or undecided, and what must be known about it; ``missing`` cells, left and right."""
    if not np.isfinite(estimate):
        return "undecided", ["no estimate: values are missing, or a set of cells is incomplete"]
    if not (np.isfinite(lo) and np.isfinite(hi)):
        return "undecided", ["no interval: what is measured carries none"]
    holds = [claim.expected.holds(v) for v in (lo, hi)]
    if all(holds) != any(holds):
        return "undecided", ["the interval contains the bound"]
    found = "supported" if all(holds) else "contradicted"
    if _could_overturn(claim, found, missing):
        return "undecided", [f"{sum(missing)} cells without a value could overturn it"]
    return found, [f"{sum(missing)} cells without a value were passed over"] if any(missing) else []


def _row(claim: Claim, model: str, values: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    estimate, lo, hi = (float(values[name]) for name in ("estimate", "lo", "hi"))
    left = int(values["missing"])
    missing = left, int(values.get("missing_right", left if claim.then else 0))
    word, why = verdict(claim, estimate, lo, hi, missing)
    at = [f"at {values['at']}"] if values["at"] else []
    return {
        "claim": claim.claim,
        "source": claim.source,
        "quantity": claim.measure,
        "model": model,
        "aggregate": aggregate(claim),
        "expected": claim.expected.text,
        "estimate": estimate,
        "lo": lo,
        "hi": hi,
        "p_adjusted": np.nan,
        "verdict": word,
        "note": " ".join([claim.sentence, *(f"[{note}]" for note in (*at, *why, *notes))]),
    }


def _names(claim: Claim) -> str:
    sides = [claim.left, *([claim.right] if claim.right else [])]
    return " / ".join(dict.fromkeys("+".join(str(v) for vs in s.models.values() for v in vs) or "all" for s in sides))


def _silent(claim: Claim, found: pd.DataFrame, tables: Tables, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of models, or of the claim as a whole, to which it cannot apply or no row speaks."""
    sides = [claim.right or claim.left, claim.left]
    read = [_read(claim, side, tables, spec) for side in sides]
    lacking = [unmet(cells_, side.select) for cells_, side in zip(read, sides, strict=True)]
    why = {model: reason for part in lacking for model, reason in part.items()}
    if any("model" in over for _, over in (*claim.left.reduce, *claim.then)):
        every = "; ".join(f"{model}, {reason}" for model, reason in why.items())
        told = {_names(claim): f"not applicable: {every}"} if why and found.empty else {}
    else:
        told = {m: f"not applicable: {reason}" for m, reason in why.items() if m not in set(found.get("model", []))}
    if found.empty and (not told or {m for part in read for m in part["model"]} - set(why)):
        told.setdefault(_names(claim), "no row of the tables speaks to it")
    nothing = {"estimate": np.nan, "lo": np.nan, "hi": np.nan, "missing": 0, "at": ""}
    return [{**_row(claim, model, nothing, []), "note": f"{claim.sentence} [{note}]"} for model, note in told.items()]


def _pools(claim: Claim, found: pd.DataFrame, spec: Mapping[str, Any]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Runs with one verdict together: those of each group, by its name, then all where they are more than one group."""
    if "model" not in found:
        return
    group = found["model"].map(spec.get("runs", {}))
    for name, runs in found.groupby(group):
        yield str(name), runs
    if group.isna().any() or group.nunique() > 1:
        yield f"{_names(claim)} ({len(found)} runs)", found


def _pooled(claim: Claim, name: str, found: pd.DataFrame, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """A verdict over runs, each run one observation, from five runs on."""
    rng = generator(spec["seed"], "claims", claim.claim, name)
    log = claim.compare == "none" and MEASURES[claim.measure].log
    values = found["estimate"].to_numpy(float)
    bound = claim.expected.bound
    if log:
        values, bound = np.log(np.where(values > 0, values, np.nan)), float(np.log(bound)) if bound > 0 else -np.inf
    side = "greater" if claim.expected.upward else "less"
    result = across_runs(values - bound, rng, confidence=spec["confidence"], sided=side)
    if result.n < MIN_RUNS or not np.isfinite(bound):
        return None
    shifted = np.array([result.effect, result.lo, result.hi]) + bound
    estimate, lo, hi = np.exp(shifted) if log else shifted
    lost = len(values) - result.n
    pooled = {"estimate": estimate, "lo": lo, "hi": hi, "missing": 0, "at": ""}
    notes = [f"{result.n} runs, each one observation, t interval; smallest attainable p {result.p_min:.3g}"]
    notes += [f"{lost} runs without an estimate held out"] if lost else []
    return {**_row(claim, name, pooled, notes), "p_adjusted": result.p_value}


def _conditional(claim: Claim) -> str:
    """What a claim's interval is conditional on."""
    steps = [kind for kind, _ in (*claim.left.reduce, *(claim.right.reduce if claim.right else ()), *claim.then)]
    if "bootstrap_mean" in steps:
        return "interval over attention heads, which share one run and its sequences; no p-value"
    return "conditional on these runs and sequences; no p-value"


def claims_table(tables: Tables, declared: Mapping[str, Any], spec: Mapping[str, Any]) -> pd.DataFrame:
    """Every declared claim with its estimate, interval and verdict, columns of the table ``claims``.

    ``tables`` by name, duplicate checkpoints left out; ``spec`` as for ``dynamics_table``. A claim that no row speaks
    to is undecided and says so, as is one that lacks the checkpoints, sites or buckets of a model. Intervals are
    conditional on the run; a p-value needs five runs and tests them, those of a group under its name, in one family of
    all claims. ConfigError for a word outside the vocabulary.
    """
    rows: list[dict[str, Any]] = []
    for claim in parse(declared):
        found = estimates(claim, tables, spec)
        rows += _silent(claim, found, tables, spec)
        for values in found.to_dict("records"):
            model = str(values.get("model", _names(claim)))
            rows.append(
                _row(
                    claim,
                    model,
                    {str(k): v for k, v in values.items()},
                    [_conditional(claim)],
                )
            )
        pooled = [_pooled(claim, name, runs, spec) for name, runs in _pools(claim, found, spec)]
        rows += [row for row in pooled if row]
    frame = pd.DataFrame(rows, columns=[c.name for c in columns("claims")])
    return finish("claims", frame.assign(p_adjusted=benjamini_hochberg(frame["p_adjusted"].to_numpy(float))))
