"""Verdicts on made-up tables whose truth is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from made_up import SPEC, attention, energy
from scipy.stats import ttest_1samp

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


def of_runs(runs, spread=0.1):
    """The table of one claim for the models of ``runs``, {model: group}: ratios 20 exp(spread * seed)."""
    spec = SPEC | {"objectives": dict.fromkeys(runs, "clm"), "runs": {m: g for m, g in runs.items() if g}}
    frame = energy(lambda m, *_: np.log(20) + spread * int(m[-1]), models=list(runs))
    return claims_table({"energy": frame}, only("decoder_peak_fixed"), spec).set_index("model")


def test_a_group_of_runs_has_one_verdict_by_its_name():
    table = of_runs({f"decoder-seed{i}": "decoder" for i in range(6)})
    assert len(table) == 7
    row = table.loc["decoder"]
    known = ttest_1samp(0.1 * np.arange(6), 0).confidence_interval(0.95)
    assert row["estimate"] == pytest.approx(20 * np.exp(0.25))
    assert [row["lo"], row["hi"]] == pytest.approx([20 * np.exp(known.low), 20 * np.exp(known.high)])
    assert (row["verdict"], row["p_adjusted"]) == ("supported", pytest.approx(1 / 64))
    assert table.drop("decoder")["p_adjusted"].isna().all()


def test_runs_that_disagree_leave_their_group_undecided():
    table = of_runs({f"decoder-seed{i}": "decoder" for i in range(6)}, spread=-0.4)
    assert set(table.drop("decoder")["verdict"]) == {"supported", "contradicted"}
    assert table.loc["decoder", "verdict"] == "undecided"


def test_two_groups_have_a_verdict_each_and_one_together():
    runs = {f"{g}-seed{i}": g for g in "ab" for i in range(6)}
    assert set(of_runs(runs).index) - set(runs) == {"a", "b", "clm (12 runs)"}


def test_too_few_runs_have_no_verdict_of_their_own():
    runs = {f"a-seed{i}": "a" for i in range(4)}
    assert set(of_runs(runs).index) == set(runs)


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


UNTRAINED = ("decoder_peak_fixed", "decoder_early_above_late_fixed", "enrichment_everywhere_late")


def seeds_at_zero(frame, model="random"):
    """Three untrained models as one series: all at step 0, early in a training that never was."""
    first = frame[frame["step"] == 0]
    parts = [first.assign(model=model, checkpoint=f"step0-seed{i}") for i in range(3)]
    return pd.concat(parts, ignore_index=True).assign(phase="early", progress=0.0)


@pytest.mark.parametrize("height", [np.log(20), np.log(0.5)])
def test_untrained_models_answer_no_statement_about_training(height):
    frame = energy(lambda *_: height)
    spec = SPEC | {"objectives": {"decoder": "clm", "random": "clm"}}
    both = pd.concat([frame, seeds_at_zero(frame)], ignore_index=True)
    for tables in ({"energy": both}, {"energy": seeds_at_zero(frame)}):
        rows = claims_table(tables, DECLARED, spec).query("model == 'random'")
        assert set(UNTRAINED) <= set(rows["claim"])
        assert set(rows["verdict"]) == {"undecided"}
        assert rows["estimate"].isna().all()
        assert rows["note"].str.contains(r"\[not applicable: no \w+ checkpoint: every one is untrained\]").all()


def test_a_trained_model_is_judged_as_if_no_untrained_one_stood_beside_it():
    frame = energy(lambda *_: np.log(20))
    spec = SPEC | {"objectives": {"decoder": "clm", "random": "clm", "encoder": "mlm"}}
    other = energy(lambda *_: np.log(5), models=("encoder",))
    high = seeds_at_zero(energy(lambda *_: np.log(1000)))
    alone = claims_table({"energy": pd.concat([frame, other], ignore_index=True)}, DECLARED, spec)
    beside = claims_table({"energy": pd.concat([frame, other, high], ignore_index=True)}, DECLARED, spec)
    kept = beside[beside["model"] != "random"].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, alone)


def test_a_series_that_stops_early_has_nothing_late_and_says_so():
    frame = energy(lambda *_: 1.0)
    row = verdict("enrichment_everywhere_late", {"energy": frame[frame["phase"] != "late"]})
    assert (row["model"], row["verdict"]) == ("decoder", "undecided")
    assert row["note"].endswith("[not applicable: no late checkpoint in this series]")


def test_one_bucket_has_no_rival():
    frame = energy(lambda *_: 1.0)
    whole = frame[frame["bucket"] == "b0"].assign(bucket="all")
    row = verdict("frequent_bucket_strongest_fixed", {"energy": whole})
    assert row["verdict"] == "undecided"
    assert row["note"].endswith("[not applicable: no most frequent bucket in this series]")
