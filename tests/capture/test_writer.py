"""From a model to sealed rows and moments, whatever the batch size."""

import numpy as np
import pytest
import torch
import xarray as xr

from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace
from isotrace.capture.writer import collect, write_cache, write_moments
from isotrace.store import create, store_path

FINGERPRINT = {"params_digest": "", "code_digest": "", "versions": {}}
WHERE = (np.array([0, 0, 1, 2, 2, 2]), np.array([1, 5, 3, 0, 4, 11]))


def captured(case, batch_size):
    inputs, targets = case.ids.numpy().astype(np.int32), case.targets.numpy().astype(np.int32)
    return collect(case.model, find_sites(case.model), inputs, targets, WHERE, batch_size=batch_size)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_rows_are_those_of_the_positions_asked_for_at_any_batch_size(case, batch_size):
    found = captured(case, batch_size)
    whole = trace(case.model, find_sites(case.model), case.ids, case.targets)
    assert found.sites == tuple(find_sites(case.model))
    assert found.activations.shape == (5, 6, 16)
    at = tuple(torch.from_numpy(w) for w in WHERE)
    for i, name in enumerate(found.sites):
        for rows, tensors in ((found.activations, whole.activations), (found.gradients, whole.gradients)):
            expected = tensors[name][at].numpy()
            assert np.abs(rows[i] - expected).max() <= 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(found.loss, whole.losses[at].numpy(), rtol=1e-5)


def test_two_captures_are_equal_to_the_bit(case):
    first, second = captured(case, 2), captured(case, 2)
    assert first.activations.tobytes() == second.activations.tobytes()
    assert first.gradients.tobytes() == second.gradients.tobytes()
    assert first.loss.tobytes() == second.loss.tobytes()


def coordinates():
    n = len(WHERE[0])
    return {
        "token_id": np.arange(n, dtype=np.int32),
        "sequence": WHERE[0].astype(np.int32),
        "draw": np.zeros(n, np.int16),
        "position": WHERE[1].astype(np.int32),
        "target_id": np.arange(n, dtype=np.int32),
        "masked": np.array([True, False, True, True, False, True]),
        "split": np.array([0, 1, 0, 1, 0, 1], np.int8),
    }


def test_a_bucket_reads_back_as_an_xarray_group_and_its_moments_agree(masked, tmp_path):
    found, sample = captured(masked, 3), coordinates()
    rows = np.array([True, True, True, True, True, False])
    with create(tmp_path / "rows.json", {}, FINGERPRINT) as root:
        write_cache(root.create_group("b0"), found, rows, sample)
    with create(tmp_path / "moments.json", {}, FINGERPRINT) as root:
        write_moments(root.create_group("b0"), found, rows, sample["split"])
    with xr.open_datatree(store_path(tmp_path / "rows.json"), engine="zarr") as tree:
        bucket = tree["b0"].to_dataset().load()
    with xr.open_datatree(store_path(tmp_path / "moments.json"), engine="zarr") as tree:
        moments = tree["b0"].to_dataset().load()
    np.testing.assert_array_equal(bucket["activations"].values, found.activations[:, rows])
    np.testing.assert_array_equal(bucket["masked"].values, sample["masked"][rows])
    assert bucket["loss"].attrs["units"] == "nats"
    for s in (0, 1):
        part = bucket.isel(token=bucket["split"].values == s)
        for quantity, name in (("activation", "activations"), ("gradient", "gradients")):
            for site in found.sites:
                values = part[name].sel(site=site).values.astype(np.float64)
                if quantity == "gradient":
                    values = values[np.any(values != 0, axis=1)]
                at = {"split": s, "quantity": ("activation", "gradient").index(quantity)}
                there = moments.isel(**at).isel(site=found.sites.index(site))
                assert int(there["n"]) == len(values)
                if len(values):
                    np.testing.assert_allclose(there["mean"], values.mean(axis=0), rtol=1e-5, atol=1e-6)
                    centred = values - values.mean(axis=0)
                    np.testing.assert_allclose(there["scatter"], centred.T @ centred, rtol=1e-4, atol=1e-5)
    # At the last block only masked positions have a gradient: rows 0 and 2 of the fit split, row 3 of eval.
    last = moments["n"].isel(quantity=1, site=found.sites.index("block.2")).values
    assert list(last) == [int(n) for n in nonzero_by_split(found, rows, sample)]


def nonzero_by_split(found, rows, sample):
    there = np.any(found.gradients[found.sites.index("block.2")] != 0, axis=1) & rows
    return [np.sum(there & (sample["split"] == s)) for s in (0, 1)]
