"""The tables of a paper: energy, removal, cosine, claims and tests, each from the rows that a figure or page shows.
Our own choice of what a row is; intervals stand beside their values, stars are by adjusted p-values alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from isotrace.figures import cosine_over_training, early_late, frames, isotropy_ablation
from isotrace.figures.marks import own
from isotrace.paper.numbers import STARS, number, span, stars
from isotrace.paper.tabular import table
from isotrace.paper.tex import Cell

Tables = Mapping[str, pd.DataFrame]
Options = Mapping[str, Any]
SEQUENCES = "Intervals are over sequences of one run, or the range over runs where there are several."
DRAWS = "Without normal: mean over random normal subspaces, lowest and highest of them."
NONE = "–"
TOO_FEW = "No p-values: they take five runs or more."


def energy(tables: Tables, options: Options) -> str:
    """Energy ratio by model and site: early and late, fixed and moving basis."""
    drawn = early_late.data(tables, options)
    columns = [(basis, phase) for basis in frames.BASES for phase in ("early", "late")]
    rows: list[list[Cell]] = []
    for model in frames.in_order(drawn["model"]):
        here = drawn[drawn["model"] == model]
        for site in frames.sites_in_order(here):
            cells = [frames.pick(here, site=site, basis=basis, phase=phase) for basis, phase in columns]
            values: list[Cell] = [
                span(*(float(c[n].iloc[0]) for n in ("ratio", "lo", "hi"))) if len(c) else NONE for c in cells
            ]
            rows.append([model, site, *values])
    heads: list[Cell] = ["model", "site", *(f"{basis}, {phase}" for basis, phase in columns)]
    first = "Gradient energy in the tangent subspace over that in a matched normal one; geometric mean over buckets."
    return table(heads, rows, align="llrrrr", notes=[first, SEQUENCES])


def isotropy(tables: Tables, options: Options) -> str:
    """Isotropy of the last block's gradients at the last checkpoint, by model and bucket: whole and without parts."""
    drawn = own(
        isotropy_ablation.data(tables, {**options, "buckets": sorted(set(tables["isotropy"]["bucket"]) - {""})})
    )
    last = drawn[drawn["step"] == drawn.groupby("model")["step"].transform("max")]
    rows: list[list[Cell]] = []
    for row in sorted(last.to_dict("records"), key=lambda r: (r["model"], frames.natural(r["bucket"]))):
        normal = [row[f"score_without_normal_{end}"] for end in ("mean", "lo", "hi")]
        rows.append([
            row["model"], row["bucket"], f"{row['step']:,}", span(row["score"], row["lo"], row["hi"]),
            number(row["score_without_tangent"]), span(*normal), "yes" if row["above_every_draw"] else "no",
        ])  # fmt: skip
    heads = ["model", "bucket", "step", "whole", "without tangent", "without normal", "above every draw"]
    told = f"IsoScore ({options.get('estimator', 'corrected')}) of gradients at the last block."
    return table(heads, rows, align="llrrrrl", notes=[told, SEQUENCES, DRAWS])


def cosine(tables: Tables, options: Options) -> str:
    """Mean cosine by model and site: at the first checkpoint, at its peak and at the last one."""
    geometry = tables["geometry"]
    sites = sorted(set(geometry["site"]) - {""}, key=frames.natural)
    drawn = own(cosine_over_training.data(tables, {**options, "sites": sites, "metrics": ["mean_cosine"]}))
    rows: list[list[Cell]] = []
    for model in frames.in_order(drawn["model"]):
        here = drawn[(drawn["model"] == model) & drawn["value"].notna()]
        for site in frames.sites_in_order(here):
            series = here[here["site"] == site].sort_values("step")
            top = series.iloc[int(series["value"].to_numpy(float).argmax())]
            first, peak, end = (span(r["value"], r["lo"], r["hi"]) for r in (series.iloc[0], top, series.iloc[-1]))
            rows.append([model, site, first, peak, f"{int(top['step']):,}", end])
    steps = sorted(set(drawn["step"]))
    ends = ["untrained" if s == 0 else f"step {s:,}" for s in (steps[0], steps[-1])] if steps else ["first", "last"]
    heads = ["model", "site", ends[0], "peak", "at step", ends[1]]
    return table(heads, rows, align="llrrrr", notes=["Mean cosine of activations; mean over buckets.", SEQUENCES])


def claims(tables: Tables, sentences: Mapping[str, str]) -> str:
    """Every claim with its estimate, interval, what was expected and its verdict; ``sentences`` by claim."""
    rows: list[list[Cell]] = []
    order = list(sentences)
    for c in sorted(tables["claims"].to_dict("records"), key=lambda c: order.index(c["claim"])):
        estimate = span(c["estimate"], c["lo"], c["hi"], marks=stars(c["p_adjusted"]))
        rows.append([sentences[c["claim"]], c["model"], estimate, c["expected"], c["verdict"]])
    heads = ["claim", "model", "estimate [interval]", "expected", "verdict"]
    width = r"p{0.42\textwidth}"
    return table(heads, rows, align=f"{width}lrll", notes=_starred(tables["claims"]))


def over_runs(tables: Tables) -> str:
    """The tests over runs that have an adjusted p-value, or why there is none."""
    dynamics = tables["dynamics"]
    found = dynamics[(dynamics["unit"] == "run") & dynamics["p_adjusted"].notna()]
    rows: list[list[Cell]] = []
    for r in found.to_dict("records"):
        effect = span(r["effect"], r["lo"], r["hi"], marks=stars(r["p_adjusted"]))
        where = ", ".join(r[c] for c in ("model", "site", "bucket") if r[c])
        rows.append([r["family"], r["test"], where, r["statistic"], effect, f"{r['n']}", number(r["p_adjusted"])])
    heads = ["family", "test", "of", "statistic", "effect [interval]", "n", "p (adjusted)"]
    return table(heads, rows, align="llllrrr", notes=_starred(found))


def _starred(frame: pd.DataFrame) -> list[str]:
    """What stars mean, where there are p-values."""
    return [STARS] if frame["p_adjusted"].notna().any() else [TOO_FEW]


def study_tables(tables: Tables, options: Mapping[str, Options], sentences: Mapping[str, str]) -> dict[str, str]:
    """All tables of a paper by name; ``options`` by figure, as the figures of the study have them."""
    makers: dict[str, Callable[[], str]] = {
        "energy": lambda: energy(tables, options.get("early_late", {})),
        "isotropy": lambda: isotropy(tables, options.get("isotropy_ablation", {})),
        "cosine": lambda: cosine(tables, options.get("cosine_over_training", {})),
        "claims": lambda: claims(tables, sentences),
        "tests": lambda: over_runs(tables),
    }
    return {name: make() for name, make in makers.items()}
