"""The headline says the peak, the gain and the verdicts in words, from tables small enough to check by hand."""

import numpy as np
import pandas as pd

from isotrace.headline import headline

RUN = {"study": "s", "model": "decoder", "seed": 0, "layer": 0, "site": "block.0", "reason": ""}


def energy_rows(ratios, *, basis="fixed", seed=0):
    """Ratios (step, bucket) at d 128, rank 8; the energy's interval is +- 10 % in odds."""
    rows = []
    for step, buckets in ratios.items():
        for b, ratio in enumerate(buckets):
            odds = ratio * 8 / 120
            mean = 8 / 120 / (1 + odds)
            rows.append({
                **RUN, "seed": seed, "checkpoint": f"step{step}", "step": step,
                "phase": "early" if step < 30 else "late",
                "bucket": f"b{b}", "quantity": "gradient", "basis": basis, "method": "pca", "rank": 8,
                "energy": odds / (1 + odds), "energy_lo": odds / 1.1 / (1 + odds / 1.1),
                "energy_hi": odds * 1.1 / (1 + odds * 1.1), "null_space": "complement", "null_mean_exact": mean,
                "null_sd_exact": mean / 10, "ratio": ratio,
            })  # fmt: skip
    return pd.DataFrame(rows)


def test_energy_peak_is_the_geometric_mean_over_buckets_with_its_interval():
    (line,) = headline({"energy": energy_rows({0: (1.0, 1.0), 10: (40.0, 10.0), 100: (4.0, 1.0)})})
    assert "decoder: gradient energy in the tangent subspace (rank 8, fixed basis) peaks at 20 [18.2, 22]" in line
    assert "at block.0, step 10" in line
    assert "4.47" in line  # early: geometric mean of 1, 1, 40, 10
    assert "this run" in line


def test_seeds_are_told_apart():
    rows = pd.concat([energy_rows({10: (4.0,)}), energy_rows({10: (9.0,)}, seed=1)])
    lines = headline({"energy": rows})
    assert [line.split(":")[0] for line in lines] == ["decoder (seed 0)", "decoder (seed 1)"]


def test_a_run_without_a_seed_is_not_lost():
    rows = energy_rows({10: (4.0,)}).assign(seed=pd.array([pd.NA], dtype="Int64"))
    assert headline({"energy": rows})[0].startswith("decoder: ")


def isotropy_rows(**columns):
    row = {
        **RUN, "checkpoint": "step100", "step": 100, "phase": "late", "bucket": "b0", "quantity": "gradient",
        "basis": "fixed", "method": "pca", "rank": 8, "estimator": ["plugin", "corrected"], "convention": "complement",
        "outliers": "kept", "null_space": "complement", "score": [0.046, np.nan],
        "score_without_tangent": [0.34, np.nan], "score_without_normal_mean": [0.0461, np.nan],
        "p_value": [0.001, np.nan], "n_nulls": 999,
    }  # fmt: skip
    return pd.DataFrame(row | columns)


def test_isotropy_gain_falls_back_to_the_estimator_that_has_values_and_names_it():
    (line,) = headline({"isotropy": isotropy_rows()})
    assert "(IsoScore, plugin) is 0.046; 0.34 without the tangent subspace, 0.0461 without a matched normal" in line
    assert "p over buckets and late checkpoints: 0.001 (999 random subspaces, given these data)" in line


def test_isotropy_without_any_value_says_nothing():
    assert headline({"isotropy": isotropy_rows(score=np.nan)}) == []


def test_cosine_peak_untrained_and_last():
    rows = pd.DataFrame({
        **RUN, "site": "final_norm", "checkpoint": ["step0", "step16", "step800"], "step": [0, 16, 800], "bucket": "b0",
        "quantity": "activation", "metric": "mean_cosine", "value": [0.09, 0.96, 0.1], "lo": [0.08, 0.95, 0.09],
        "hi": [0.1, 0.97, 0.11],
    })  # fmt: skip
    (line,) = headline({"geometry": rows})
    assert "at final_norm peaks at 0.96 [0.95, 0.97], step 16; untrained 0.09; step 800 0.1." in line


def test_claims_are_counted_and_absent_tables_are_left_out():
    verdicts = ["supported", "supported", "undecided"]
    lines = headline({"claims": pd.DataFrame({"claim": list("abc"), "verdict": verdicts})})
    assert lines == ["declared claims: 2 supported, 0 contradicted, 1 undecided (of 3; see claims.csv)."]
    assert headline({}) == []
