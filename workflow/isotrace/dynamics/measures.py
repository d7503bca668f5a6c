"""From result tables to cells: a number, its interval, and the keys that say where it was measured.

Odds of the energy: Bernas et al. 2026 with exact Haar moments; the choice of cells is ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isotrace.schema import keys_of

Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Measure:
    """A table, the function that gives (estimate, lo, hi) of each of its rows, whether it lives on a log scale."""

    table: str
    values: Callable[[pd.DataFrame], pd.DataFrame]
    log: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a cell."""
        return keys_of(self.table)


ATTRIBUTES = ("step", "progress", "phase", "layer")


def _interval(estimate: pd.Series, lo: pd.Series | float, hi: pd.Series | float) -> pd.DataFrame:
    return pd.DataFrame({"estimate": estimate, "lo": lo, "hi": hi}, index=estimate.index).astype(float)


def energy_ratio(frame: pd.DataFrame) -> pd.DataFrame:
    """The ratio to the null's mean; its interval follows from the energy's.

    Against the complement the ratio is proportional to the odds E/(1-E) of the energy, otherwise to E.
    """
    complement = (frame["null_space"] == "complement").to_numpy()

    def scale(column: str) -> np.ndarray:
        energy = frame[column].to_numpy(float)
        return np.where(complement, energy / (1 - energy), energy)

    ratio = frame["ratio"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        lo, hi = (ratio * scale(c) / scale("energy") for c in ("energy_lo", "energy_hi"))
    return _interval(frame["ratio"], pd.Series(lo, frame.index), pd.Series(hi, frame.index))


def _enrichment(frame: pd.DataFrame) -> pd.DataFrame:
    unit = frame["enrichment"] / frame["energy"]
    return _interval(frame["enrichment"], unit * frame["energy_lo"], unit * frame["energy_hi"])


def draws_reaching(frame: pd.DataFrame) -> pd.DataFrame:
    """How many null draws raise isotropy at least as much as the tangent's removal: (B+1) p - 1, an exact count.

    All B of them where the removal does not raise it at all.
    """
    draws = frame["n_nulls"].astype(float)
    count = ((draws + 1) * frame["p_value"] - 1).round()
    count = count.where(~(frame["delta_tangent"] <= 0), draws)
    return _interval(count, count, count)


def _column(name: str, lo: str | None = None, hi: str | None = None) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def values(frame: pd.DataFrame) -> pd.DataFrame:
        return _interval(frame[name], frame[lo] if lo else np.nan, frame[hi] if hi else np.nan)

    return values


def _sharpness(frame: pd.DataFrame) -> pd.DataFrame:
    return _interval(1 - frame["entropy"], np.nan, np.nan)


def _one_minus(frame: pd.DataFrame) -> pd.DataFrame:
    return _interval(1 - frame["value"], 1 - frame["hi"], 1 - frame["lo"])


def magnitude(frame: pd.DataFrame) -> pd.DataFrame:
    """The value without its sign; an interval that contains 0 begins there."""
    value, lo, hi = (frame[name].astype(float) for name in ("value", "lo", "hi"))
    nearest = pd.concat([lo, -hi, 0 * lo], axis=1).max(axis=1, skipna=False)
    return _interval(value.abs(), nearest, pd.concat([lo.abs(), hi.abs()], axis=1).max(axis=1, skipna=False))


MEASURES: dict[str, Measure] = {
    "energy.ratio": Measure("energy", energy_ratio, log=True),
    "energy.enrichment": Measure("energy", _enrichment, log=True),
    "isotropy.score": Measure("isotropy", _column("score", "score_lo", "score_hi")),
    "isotropy.delta_tangent": Measure("isotropy", _column("delta_tangent")),
    "isotropy.draws_reaching": Measure("isotropy", draws_reaching),
    "isotropy.anisotropy_share": Measure("isotropy", _column("anisotropy_share")),
    "geometry.value": Measure("geometry", _column("value", "lo", "hi")),
    "frequency.spearman": Measure("frequency", _column("spearman", "lo", "hi")),
    "attention.drift_q": Measure("attention", _column("drift_q")),
    "attention.drift_k": Measure("attention", _column("drift_k")),
    "attention.mean_cosine_qk": Measure("attention", _column("mean_cosine_qk")),
    "attention.sharpness": Measure("attention", _sharpness),
    "attention_intervals.value": Measure("attention_intervals", _column("value", "lo", "hi")),
    "attention_intervals.one_minus": Measure("attention_intervals", _one_minus),
    "attention_intervals.magnitude": Measure("attention_intervals", magnitude),
    "attention_mass.log_ratio": Measure("attention_mass", _column("log_ratio", "lo", "hi")),
    "dynamics.effect": Measure("dynamics", _column("effect", "lo", "hi")),
}


RUN = ("study", "model", "seed", "checkpoint", "step", "progress", "phase")


def missing_cells(name: str, tables: Tables, found: pd.DataFrame) -> pd.DataFrame:
    """A cell without a value at each place of ``found`` for every checkpoint (or bucket of it) that has no results.

    A broken checkpoint has one row that names no place; a claim about every checkpoint must not pass it over.
    """
    measure = MEASURES[name]
    if measure.table not in tables or found.empty:
        return found.iloc[:0]
    frame = tables[measure.table]
    place = next(key for key in ("site", "query_bucket") if key in frame)
    if "checkpoint" not in frame:
        return found.iloc[:0]
    known = [c for c in RUN if c in found]
    same = ["model", *(["bucket"] if "bucket" in found else [])]
    dead = frame[frame[place] == ""][list(dict.fromkeys([*known, *same]))].drop_duplicates()
    places = found.drop(columns=[c for c in known if c != "model"]).drop_duplicates(
        [c for c in measure.keys if (c in found and c not in RUN) or c == "model"]
    )
    lost = dead.merge(places, on=same, how="inner").assign(estimate=np.nan, lo=np.nan, hi=np.nan)
    return lost[found.columns]


def cells(
    name: str, tables: Tables, where: Mapping[str, tuple[object, ...]], defaults: Mapping[str, object]
) -> pd.DataFrame:
    """The cells of a measure: its keys, step, progress, phase, layer, estimate, lo, hi.

    ``where`` keeps rows by column; ``defaults`` (rank, method, null_space) apply to columns that it leaves open.
    Duplicate checkpoints must have been left out before. A table that was not made gives no cells.
    """
    measure = MEASURES[name]
    names = list(dict.fromkeys([*measure.keys, *ATTRIBUTES]))
    if measure.table not in tables:
        return pd.DataFrame(columns=[*names, "estimate", "lo", "hi"])
    frame = tables[measure.table]
    wanted = {column: (value,) for column, value in defaults.items() if column in measure.keys}
    keep = pd.Series(True, index=frame.index)
    for column, values in {**wanted, **where}.items():
        keep &= frame[column].isin(list(values))
    frame = frame[keep].reset_index(drop=True)
    return pd.concat([frame.reindex(columns=names), measure.values(frame)], axis=1)
