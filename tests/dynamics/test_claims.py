"""Verdicts on made-up tables whose truth is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from made_up import SPEC, attention, energy

from isotrace.dynamics.claims import claims_table

DECLARED = yaml.safe_load((Path(__file__).parents[2] / "config" / "claims.yaml").read_text(encoding="utf-8"))


def only(name):
    return {"claims": [c for c in DECLARED["claims"] if c["claim"] == name]}


def verdict(name, tables, spec=SPEC):
    return claims_table(tables, only(name), spec).iloc[0]


def bump(top):
    """Ratio ``top`` at block.1, step 20, and one elsewhere; frequent buckets above rare ones around the mean."""
    return lambda model, step, site, b: np.log(top) * (site == "block.1" and step == 20) + 0.5 * (1 - b)


@pytest.mark.parametrize(("top", "expected"), [(12, "supported"), (10.2, "undecided"), (5, "contradicted")])
def test_peak(top, expected):
    row = verdict("decoder_peak_fixed", {"energy": energy(bump(top))})
    assert row["verdict"] == expected
    assert row["estimate"] == pytest.approx(top)
    assert (row["lo"], row["hi"]) == pytest.approx((top * np.exp(-0.05), top * np.exp(0.05)))
    assert "at block.1, step20" in row["note"]


def test_two_models_are_compared_by_the_worst_case_of_both():
    tables = {"energy": energy(lambda m, *_: np.log(20 if m == "decoder" else 5), models=("decoder", "encoder"))}
    row = verdict("decoder_peak_above_encoder_peak_fixed", tables)
    assert row["model"] == "clm / mlm"
    assert row["estimate"] == pytest.approx(np.log(4))
    assert row["hi"] - row["estimate"] == pytest.approx(0.1)
    assert np.isnan(row["p_adjusted"])
    assert row["verdict"] == "supported"


def test_early_above_late():
    falling = {"energy": energy(lambda m, step, *_: 2 - step / 100)}
    assert verdict("decoder_early_above_late_fixed", falling)["verdict"] == "supported"
    rising = {"energy": energy(lambda m, step, *_: step / 100)}
    assert verdict("decoder_early_above_late_fixed", rising)["verdict"] == "contradicted"


def test_frequent_bucket():
    row = verdict("frequent_bucket_strongest_fixed", {"energy": energy(bump(3))})
    assert row["verdict"] == "supported"
    assert row["estimate"] == pytest.approx(0.5)


def test_one_missing_cell_can_overturn_a_claim_about_every_cell_but_not_a_peak():
    frame = energy(lambda *_: np.log(20))
    hole = (frame["step"] == 90) & (frame["site"] == "block.0") & (frame["bucket"] == "b1")
    early_hole = (frame["step"] == 10) & (frame["site"] == "block.0") & (frame["bucket"] == "b1")
    values = ["energy", "energy_lo", "energy_hi", "enrichment", "ratio"]
    frame.loc[hole | early_hole, values] = np.nan
    everywhere = verdict("enrichment_everywhere_late", {"energy": frame})
    assert everywhere["verdict"] == "undecided"
    assert "could overturn" in everywhere["note"]
    peak = verdict("decoder_peak_fixed", {"energy": frame})
    assert peak["verdict"] == "supported"
    assert "1 cells without a value were passed over" in peak["note"]


def test_a_missing_rival_can_overturn_a_comparison():
    frame = energy(bump(3))
    rival = (frame["bucket"] == "b1") & (frame["step"] == 10) & (frame["site"] == "block.0")
    frame.loc[rival, ["energy", "energy_lo", "energy_hi", "enrichment", "ratio"]] = np.nan
    row = verdict("frequent_bucket_strongest_fixed", {"energy": frame})
    assert row["verdict"] == "undecided"


def test_a_peak_reaches_as_far_as_any_cell():
    cells = pd.DataFrame(
        {
            "study": "s", "model": "decoder", "seed": 0, "checkpoint": ["step80", "step90"], "step": [80, 90],
            "tokens_seen": np.nan, "progress": [0.8, 0.9], "phase": "late", "site": "embed", "layer": -1,
            "kind": "static", "of": "norm", "n_types": 100, "spearman": [-0.30, -0.32], "lo": [-0.35, -0.7],
            "hi": [-0.25, 0.1], "reason": "",
        }
    )  # fmt: skip
    row = verdict("frequent_smaller_norm", {"frequency": cells})
    assert (row["estimate"], row["lo"], row["hi"]) == (-0.30, -0.35, 0.1)
    assert row["verdict"] == "undecided"


def test_mean_over_an_incomplete_set_is_no_mean():
    frame = energy(lambda m, s, site, b: np.log(20.0) + 3 * b)
    frame = frame[~((frame["step"] == 20) & (frame["bucket"] == "b0"))]
    row = verdict("decoder_peak_fixed", {"energy": frame})
    assert row["estimate"] == pytest.approx(20 * np.exp(3))


def test_heads_are_resampled():
    row = verdict("query_drift_grows", {"attention": attention(lambda head: 0.1 * (1 + head))})
    assert row["verdict"] == "supported"
    assert row["lo"] < row["estimate"] == pytest.approx(0.25)
    assert verdict("query_drift_grows", {"attention": attention(lambda head: head - 1.5)})["verdict"] == "undecided"


@pytest.mark.parametrize("tables", [{}, {"energy": energy(bump(3), models=("tiny",), steps=(0, 100), rank=4)}])
def test_a_study_that_cannot_answer_is_undecided_everywhere(tables):
    table = claims_table(tables, DECLARED, SPEC)
    assert set(table["claim"]) == {c["claim"] for c in DECLARED["claims"]}
    assert set(table["verdict"]) == {"undecided"}


def test_five_runs_are_tested_as_runs():
    models = [f"run{i}" for i in range(6)]
    spec = SPEC | {"objectives": dict.fromkeys(models, "clm")}
    frame = energy(lambda m, step, *_: np.log(20) + 0.1 * int(m[-1]), models=models)
    table = claims_table({"energy": frame}, only("decoder_peak_fixed"), spec)
    pooled = table[table["p_adjusted"].notna()].iloc[0]
    assert len(table) == 7
    assert pooled["model"] == "clm (6 runs)"
    assert pooled["p_adjusted"] == pytest.approx(1 / 64)
    assert pooled["estimate"] == pytest.approx(20 * np.exp(0.25))


def test_same_input_same_table():
    tables = {"energy": energy(bump(12)), "attention": attention(lambda head: 0.1 * head)}
    first, second = (claims_table(tables, DECLARED, SPEC) for _ in range(2))
    assert first.equals(second)


def buried(frame, step):
    """The frame with one checkpoint's rows replaced by a row that only says why there are none."""
    kept, lost = frame[frame["step"] != step], frame[frame["step"] == step]
    stone = lost.drop_duplicates("bucket").copy()
    for name in ("site", "quantity", "basis", "method", "null_space"):
        stone[name] = ""
    stone[["energy", "energy_lo", "energy_hi", "enrichment", "ratio", "layer", "rank"]] = np.nan
    return pd.concat([kept, stone.assign(reason="truncated weights")], ignore_index=True)


def test_a_broken_checkpoint_is_not_passed_over():
    frame = energy(lambda *_: np.log(20))
    assert verdict("enrichment_everywhere_late", {"energy": frame})["verdict"] == "supported"
    row = verdict("enrichment_everywhere_late", {"energy": buried(frame, 90)})
    assert row["verdict"] == "undecided"
    assert "could overturn" in row["note"]
    assert verdict("decoder_peak_fixed", {"energy": buried(frame, 90)})["verdict"] == "supported"
