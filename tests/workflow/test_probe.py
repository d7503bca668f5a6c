"""What is measured during training is what the workflow measures at the same checkpoint."""

import json

import numpy as np
import pandas as pd
import pytest

from isotrace.capture.probe import Probe
from isotrace.checkpoints.load import load_model
from isotrace.corpus.stores import read_passes

RANK = 4


def of_workflow(results, model, step):
    """The probe's measures as means over buckets of the tables."""
    tables = {n: pd.read_parquet(results / "tables" / f"{n}.parquet") for n in ("geometry", "isotropy", "energy")}
    at = {n: t[(t["model"] == model) & (t["step"] == step)] for n, t in tables.items()}
    geometry = at["geometry"].query("quantity == 'activation' and metric in ('mean_cosine', 'norm_drift', 'loss')")
    found = {f"{m}/{s}": part["value"].mean() for (m, s), part in geometry.groupby(["metric", "site"])}
    found = {("loss" if name.startswith("loss/") else name): value for name, value in found.items()}
    where = "estimator == 'corrected' and convention == 'ambient' and outliers == 'kept' and basis == 'fixed'"
    for (quantity, site), part in at["isotropy"].query(f"{where} and rank == {RANK}").groupby(["quantity", "site"]):
        found[f"isotropy_{quantity}/{site}"] = part["score"].mean()
    where = "quantity == 'gradient' and basis == 'moving' and method == 'pca' and null_space == 'complement'"
    for site, part in at["energy"].query(f"{where} and rank == {RANK}").groupby("site"):
        found[f"energy_ratio/{site}"] = np.exp(np.log(part["ratio"]).mean())
    heads = pd.read_parquet(results / "tables" / "attention.parquet")
    heads = heads[(heads["model"] == model) & (heads["step"] == step)]
    heads = heads.query("query_bucket == 'all' and key_bucket == 'all'")
    found |= {"drift_q": heads["drift_q"].mean(), "drift_k": heads["drift_k"].mean()}
    return found | {"sharpness": 1 - heads["entropy"].mean()}


@pytest.mark.parametrize(("name", "objective"), [("decoder", "clm"), ("encoder", "mlm")])
def test_a_probe_gives_the_numbers_of_the_tables(smoke, name, objective):
    results = smoke.folder / "results"
    path = json.loads((results / "checkpoints" / name / "step10.json").read_text())["source"]["path"]
    model = load_model(smoke.folder / path, objective)
    found = Probe(read_passes(results / "sample" / f"{name}.json"), rank=RANK).measure(model)
    wanted = {k: v for k, v in of_workflow(results, name, 10).items() if np.isfinite(v)}
    assert set(found) == set(wanted)
    assert len(found) > 20
    for measure, value in wanted.items():
        assert found[measure] == pytest.approx(value, rel=1e-5), measure
