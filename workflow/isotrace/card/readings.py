"""What the card reads: from result tables to one number a site and checkpoint, with its interval.
Quantities of Godey et al. 2024 and Bernas et al. 2026; how they are summed up is our choice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from isotrace.figures import frames

Tables = Mapping[str, pd.DataFrame]
How = Mapping[str, Any]
PLACE = ["site", "layer", "checkpoint", "step"]
COLUMNS = [*PLACE, "value", "lo", "hi", "reason"]


@dataclass(frozen=True)
class Read:
    """One number a site and checkpoint (``COLUMNS``; NaN with a reason), or nothing and ``reason``.

    ``judged`` are the sites of which the worst counts; ``of`` says what was read where there was a choice.
    """

    frame: pd.DataFrame
    judged: list[str]
    reason: str = ""
    of: str = ""


def nothing(reason: str) -> Read:
    """No number at all, and why."""
    return Read(pd.DataFrame(columns=COLUMNS), [], reason)


def of_model(tables: Tables, name: str, model: str, **wanted: Any) -> pd.DataFrame:
    """The rows of a table that are a model's own and have the wanted values; none where the table is not there."""
    return frames.pick(tables[name], model=model, **wanted) if name in tables else pd.DataFrame()


def of_activations(tables: Tables, model: str, metric: str) -> pd.DataFrame:
    """A metric of table ``geometry``, of activations, with rows for broken checkpoints."""
    rows = of_model(tables, "geometry", model, quantity="activation", metric=metric)
    if rows.empty:
        return rows
    return frames.with_tombstones(rows, of_model(tables, "geometry", model), line=["site", "layer", "bucket"])


def over_buckets(rows: pd.DataFrame, value: str = "value", lo: str = "lo", hi: str = "hi") -> pd.DataFrame:
    """The mean over buckets at each site and checkpoint, with the mean of their limits, as if all erred together.

    Buckets that lack a value somewhere in a site's series are left out of it, unless all do: a mean over other
    buckets would jump without any change of the model.
    """
    found = []
    for key, site in rows.groupby(["site", "layer"], dropna=False):
        alive = site.groupby("checkpoint")[value].transform(lambda x: x.notna().any())
        gaps = site[alive & site[value].isna()]["bucket"].unique()
        kept = site if set(gaps) == set(site["bucket"]) else site[~site["bucket"].isin(gaps)]
        for place, cell in kept.groupby(["step", "checkpoint"]):
            mean = float(cell[value].mean())
            reason = next((str(r) for r in cell["reason"] if r), "no value") if np.isnan(mean) else ""
            limits = frames.mean_of_all(cell[lo]), frames.mean_of_all(cell[hi])
            found.append([*key, place[1], place[0], mean, *limits, reason])
    return pd.DataFrame(found, columns=COLUMNS)


def _read(frame: pd.DataFrame, judged: list[str] | None = None, of: str = "") -> Read:
    """The frame without the embedding, which knows no context, where other sites are; all of them are judged."""
    inner = frame[frame["site"] != "embed"]
    frame = inner if len(inner) else frame
    sites = judged or frames.sites_in_order(frame)
    here = frame[frame["site"].isin(sites)]
    if here["value"].isna().all():
        return nothing(str(here["reason"].mode().iloc[0]))
    return Read(frame.reset_index(drop=True), sites, of=of)


def geometry(metric: str, *, last: bool = False) -> Callable[[Tables, str, How], Read]:
    """A metric of activations; ``last``: only the last site is judged."""

    def read(tables: Tables, model: str, how: How) -> Read:
        rows = of_activations(tables, model, metric)
        if rows.empty:
            return nothing(f"not measured: geometry.metrics does not name {metric}")
        frame = over_buckets(rows)
        return _read(frame, frames.sites_in_order(frame)[-1:] if last else None)

    return read


def isotropy(tables: Tables, model: str, how: How) -> Read:
    """The score of whole clouds of activations, `corrected` where it was computed; a removed basis is no part of it."""
    rows = of_model(tables, "isotropy", model, quantity="activation")
    if rows.empty:
        return nothing("not measured: no isotropy of activations")
    computed = list(rows["estimator"].unique())
    estimator = "corrected" if "corrected" in computed else computed[0]
    rows = frames.pick(rows, estimator=estimator)
    rows = rows[rows["outliers"] == ("kept" if "kept" in set(rows["outliers"]) else "dropped")]
    rows = rows[rows["c0"] == rows["c0"].iloc[0]].drop_duplicates(["site", "bucket", "checkpoint"])
    rows = frames.with_tombstones(rows, of_model(tables, "isotropy", model), line=["site", "layer", "bucket"])
    return _read(over_buckets(rows, "score", "score_lo", "score_hi"), of=estimator)


def late_energy(tables: Tables, model: str, how: How) -> Read:
    """Energy ratio of gradients after the early phase, over the highest of trained early checkpoints at the site.

    In each checkpoint's own basis where it was fitted, as a fixed one ages.
    """
    rows = of_model(tables, "energy", model, quantity="gradient", method=how["method"], rank=how["rank"])
    if rows.empty:
        return nothing("not measured: no energies of gradients")
    rows = frames.pick(rows, null_space=how["null_space"])
    basis = "moving" if "moving" in set(rows["basis"]) else "fixed"
    rows = frames.ratios(frames.pick(rows, basis=basis))
    means = frames.geometric_mean(rows, [*PLACE, "phase"])
    early = means[(means["phase"] == "early") & (means["step"] > 0)]
    peaks = early.loc[early.groupby("site")["ratio"].idxmax()].set_index("site")
    later = means[(means["phase"] != "early") & means["site"].isin(peaks.index)]
    if means.empty:
        return nothing(str(rows["reason"].mode().iloc[0]) or "no energies of gradients")
    if later.empty:
        return nothing("no trained early checkpoint and a later one to compare")
    peak = peaks.loc[later["site"]]
    over = {
        "value": later["ratio"].to_numpy() / peak["ratio"].to_numpy(),
        "lo": later["lo"].to_numpy() / peak["hi"].to_numpy(),
        "hi": later["hi"].to_numpy() / peak["lo"].to_numpy(),
    }
    frame = later[PLACE].assign(**over, reason="")
    whole = of_model(tables, "energy", model)
    frame = frames.with_tombstones(frame.assign(model=model), whole, line=["site", "layer"])
    return _read(frame.drop_duplicates(["site", "checkpoint"])[COLUMNS], of=f"{basis} basis")


def attention(tables: Tables, model: str, columns: Sequence[str], *, falls: bool = False) -> Read:
    """The mean over heads, and over columns of table ``attention``, at each layer, over all buckets.

    Its limits are the means of the limits, as if all heads erred together. ``falls``: one minus all that.
    """
    whole = of_model(tables, "attention_intervals", model)
    rows = frames.pick(whole, query_bucket="all", key_bucket="all", column=list(columns)) if len(whole) else whole
    if rows.empty:
        said = [r for r in whole["reason"] if r] if len(whole) else []
        return nothing(said[0] if said else "not measured: no rows of attention")
    rows = frames.with_tombstones(rows, whole, line=["layer", "head", "column"])
    rows = rows.assign(site="block." + rows["layer"].astype(str), bucket=rows["column"] + rows["head"].astype(str))
    frame = over_buckets(rows)
    if falls:
        frame = frame.assign(value=1 - frame["value"], lo=1 - frame["hi"], hi=1 - frame["lo"])
    return _read(frame)


def attention_drift(tables: Tables, model: str, how: How) -> Read:
    """The mean of the drifts of queries and of keys, |mean Q|/mean|Q| and |mean K|/mean|K|."""
    return attention(tables, model, ("drift_q", "drift_k"))


def sharpness(tables: Tables, model: str, how: How) -> Read:
    """1 - entropy / log(visible keys)."""
    return attention(tables, model, ("entropy",), falls=True)


def frequency_bias(tables: Tables, model: str, how: How) -> Read:
    """The larger of |Spearman| of log count with norm and with distance to the centroid, of the input embedding.

    Of contextual means where there is no embedding; its interval is that of the larger one.
    """
    whole = of_model(tables, "frequency", model)
    rows = frames.pick(whole, of=["norm", "centroid_distance"]) if len(whole) else whole
    kinds = [k for k in ("static", "contextual") if len(rows) and rows.loc[rows["kind"] == k, "spearman"].notna().any()]
    if not kinds:
        said = [r for r in whole["reason"] if r] if len(whole) else []
        return nothing(said[0] if said else "not measured: no rows of frequency")
    rows = frames.with_tombstones(frames.pick(rows, kind=kinds[0]), whole, line=["site", "layer", "of"])
    down = rows["spearman"] < 0
    rows = rows.assign(
        value=rows["spearman"].abs(),
        lo=rows["lo"].where(~down, -rows["hi"]).clip(lower=0),
        hi=rows["hi"].where(~down, -rows["lo"]),
    )
    rows = rows.sort_values("value", ascending=False, na_position="last").drop_duplicates(["site", "checkpoint"])
    return _read(rows.sort_values(["step", "layer"])[COLUMNS], of=f"{kinds[0]} vectors")
