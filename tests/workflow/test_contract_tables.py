"""Tables of the smoke study: the contract's columns with their units, reasons for gaps, every row asked for."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

CHECKPOINTS = ("step0", "step3", "step10")
MODELS = ("decoder", "encoder")
BUCKETS = ("b0", "b1")
SITES = ["embed", "block.0", "block.1", "final_norm"]
KEY = ["study", "model", "seed", "checkpoint", "step", "tokens_seen", "progress", "phase", "site", "layer", "bucket"]
COLUMNS = {
    "energy": """quantity basis method rank n_tokens energy energy_lo energy_hi enrichment null_space null_mean
        null_mean_exact null_sd_exact ratio z p_value n_nulls reason""",
    "isotropy": """quantity basis method rank n_tokens estimator c0 shrinkage convention outliers score score_lo
        score_hi score_without_tangent null_space score_without_normal_mean score_without_normal_lo
        score_without_normal_hi delta_tangent delta_normal p_value n_nulls anisotropy_share reason""",
    "geometry": "quantity n_tokens metric value lo hi reason",
    "controls": """quantity basis method rank n_tokens ratio ratio_variance_weighted ratio_mean_removed
        ratio_outliers_dropped ratio_loss_balanced n_effective ratio_moving optimism optimism_lo optimism_hi leaked
        reason""",
    "rank_curve": "quantity basis method n_tokens statistic rank value lo hi isotropic reason",
    "subspaces": """comparison method other rank overlap angle_min angle_max haar_mean haar_sd z p_value n_nulls
        reason""",
    "components": """model checkpoint step site layer method component explained_variance sign order token_id token
        bucket score n_occurrences reason""",
    "untrained": "study model seed draw site layer bucket metric n_tokens value lo hi reason",
    "frequency": "kind of n_types spearman lo hi reason",
    "attention": """model seed checkpoint step progress phase layer head query_bucket key_bucket mean_norm_q
        mean_norm_k drift_q drift_k mean_cosine_qk mean_dot_qk k_sign sigma1_share_q entropy max_weight logit_sd
        reason""",
    "attention_intervals": """model seed checkpoint step progress phase layer head query_bucket key_bucket column value
        lo hi reason""",
    "attention_mass": """model seed checkpoint step progress phase layer head query_bucket key_bucket mass share
        log_ratio lo hi reason""",
    "dynamics": """family test unit model site bucket quantity statistic effect lo hi n p_min p_value p_adjusted
        method note""",
    "claims": """claim source quantity model aggregate expected estimate lo hi p_adjusted verdict note""",
    "audit": "model checkpoint step finding severity detail",
}
PHASES = {"step0": "early", "step3": "early", "step10": "late"}
MAY_BE_EMPTY = {"reason", "c0", "note"}


def wanted(stage):
    """The columns of a table, in order, as the contract lists them."""
    own = COLUMNS[stage].split()
    if stage in ("energy", "isotropy", "geometry", "controls", "rank_curve"):
        return KEY + own
    return [k for k in KEY if k != "bucket"] + own if stage in ("frequency", "subspaces") else own


@pytest.mark.parametrize("stage", COLUMNS)
def test_a_table_has_exactly_the_columns_of_the_contract_with_units(smoke, stage):
    file = pq.ParquetFile(smoke.at(f"tables/{stage}.parquet"))
    fields = [file.schema_arrow.field(i) for i in range(len(file.schema_arrow))]
    assert [f.name for f in fields] == wanted(stage)
    assert all(b"unit" in (f.metadata or {}) for f in fields)
    csv = smoke.at(f"tables/{stage}.csv").read_text()
    assert csv.partition("\n")[0].split(",") == wanted(stage)
    assert csv.count("\n") >= file.metadata.num_rows + 1


@pytest.mark.parametrize("stage", COLUMNS)
def test_a_missing_number_comes_with_its_reason(smoke, stage):
    table = smoke.table(stage)
    reason = "note" if stage in ("dynamics", "claims") else "reason"
    numbers = table.select_dtypes("number").drop(columns=["shrinkage", "seed", "tokens_seen"], errors="ignore")
    if stage != "audit":
        if stage == "subspaces":  # what compares bases of no single checkpoint has no step
            numbers.loc[table["checkpoint"] == "", ["step", "progress"]] = 0
        gaps = numbers.isna().any(axis=1)
        assert (table.loc[gaps, reason].str.len() > 0).all()
        texts = table.select_dtypes(exclude="number").drop(columns=[*MAY_BE_EMPTY & set(table)])
        assert not texts.isna().any(axis=None)
    keys = [c for c in table if c not in numbers or c in ("step", "layer", "rank", "head", "component", "order")]
    assert not table.duplicated(keys).any()


def test_progress_and_phase_follow_the_steps(smoke):
    for name in (
        "energy",
        "controls",
        "rank_curve",
        "isotropy",
        "geometry",
        "frequency",
        "attention",
        "attention_mass",
    ):
        table = smoke.table(name)
        assert dict(zip(table["checkpoint"], table["phase"], strict=True)) == PHASES
        assert np.allclose(table["progress"], table["step"] / 10, rtol=0, atol=1e-15)
    energy = smoke.table("energy")
    assert (energy["tokens_seen"] == energy["step"] * 8 * 64).all()
    layers = dict(zip(energy["site"], energy["layer"], strict=True))
    assert layers == {"embed": -1, "block.0": 0, "block.1": 1, "final_norm": 2}


def test_every_combination_asked_for_is_a_row(smoke):
    energy = smoke.table("energy")
    assert set(energy["null_space"]) == {"complement", "ambient", "variance_weighted"}
    assert set(energy["rank"]) == {2, 4}
    fixed = energy[(energy["basis"] == "fixed") & (energy["method"] == "pca")]
    assert len(fixed) == len(MODELS) * len(CHECKPOINTS) * len(BUCKETS) * len(SITES) * 2 * 2 * 3
    early = energy[energy["basis"] == "leave_one_out"]
    assert set(early["checkpoint"]) == {"step0", "step3"}
    assert set(energy[energy["basis"] == "moving"]["checkpoint"]) == set(CHECKPOINTS)
    assert set(energy[energy["method"] == "random"]["basis"]) == {"fixed"}
    isotropy = smoke.table("isotropy")
    assert set(isotropy["estimator"]) == {"plugin", "star", "ustat", "corrected"}
    assert set(isotropy["convention"]) == {"complement", "ambient"}
    assert set(isotropy["outliers"]) == {"kept", "dropped"}


def test_tables_read_back_the_same_from_csv(smoke):
    parquet = smoke.table("energy")
    csv = pd.read_csv(smoke.at("tables/energy.csv"))
    for name in ("energy", "ratio", "null_sd_exact", "progress"):
        assert np.array_equal(parquet[name], csv[name], equal_nan=True)
