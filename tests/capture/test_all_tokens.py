"""Energies of every evaluation token: what a moments store says of them, read back, against the rows themselves."""

import numpy as np
import pandas as pd
import pytest
import torch
import zarr
from samples import BUCKETS, captured, sample_of

from isotrace.analysed import Analysed
from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import energy_table
from isotrace.geometry.jackknife import group_labels
from isotrace.geometry.moments import moments
from isotrace.geometry.rows import Bucket
from isotrace.readers import read_bucket_moments

SPEC = {
    "seed": 0,
    "ranks": [2],
    "null_spaces": ["complement", "ambient"],
    "draws": {"complement": 99, "ambient": 99},
    "centred": False,
    "resamples": 20,
    "confidence": 0.95,
    "min_rows": 2,
}


def rows_of(case, passes, b):
    """Every evaluation row of a bucket, and the group of sequences that it is in, as traced in one batch."""
    one = trace(
        case.model,
        find_sites(case.model),
        *(torch.from_numpy(a.astype(np.int64)) for a in (passes.inputs, passes.targets)),
    )
    at = np.nonzero((passes.position_bucket == b) & (passes.split == 1)[:, None])
    groups = np.full(len(passes.split), -1)
    groups[passes.split == 1] = group_labels(passes.sequence[passes.split == 1], 20)
    activations, gradients = (np.stack([v.numpy()[at] for v in x.values()]) for x in (one.activations, one.gradients))
    ids, n = passes.inputs[at], at[0].size
    bucket = Bucket(
        BUCKETS[b],
        tuple(one.activations),
        activations,
        gradients,
        ids,
        groups[at[0]],
        at[1],
        np.ones(n),
        np.ones(n, bool),
    )
    return bucket, groups[groups >= 0].max() + 1


@pytest.mark.parametrize("family", ["llama", "modernbert"])
def test_a_store_of_all_tokens_gives_the_moments_and_the_table_of_their_rows(make_case, family, tmp_path):
    case = make_case(family)
    passes = sample_of(case)
    with captured(case, tmp_path, moments_tokens="all") as stores:
        for b, name in enumerate(BUCKETS):
            rows, groups = rows_of(case, passes, b)
            found = read_bucket_moments(stores["moments"], name)
            for site in found.sites:
                for quantity in ("activation", "gradient"):
                    mine = rows.rows(site, quantity)
                    wanted = [moments(mine.values[mine.sequence == g]) for g in range(groups)]
                    agree(found.whole(site, quantity), moments(mine.values))
                    for part, part_wanted in zip(found.groups(site, quantity), wanted, strict=True):
                        agree(part, part_wanted)
            d = rows.activations.shape[-1]
            q = np.linalg.qr(np.random.default_rng(0).standard_normal((len(found.sites), d, 2)))[0]
            basis = Basis("fixed", "pca", found.sites, q, np.ones((len(q), 2)), np.ones(len(q), int))
            frames = [energy_table(x, [basis], SPEC, variance={}) for x in (found, rows)]
            bounds = ["energy_lo", "energy_hi", "reason"]
            pd.testing.assert_frame_equal(*(f.drop(columns=bounds) for f in frames), rtol=1e-3)
            assert (frames[0].energy_lo < frames[0].energy_hi).any()


def agree(found, wanted):
    assert found.n == wanted.n
    for name in ("mean", "scatter", "q3"):
        a, b = getattr(found, name), getattr(wanted, name)
        assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max() + 1e-9
    assert found.q4 == pytest.approx(wanted.q4, rel=1e-4, abs=1e-9)


def test_energies_are_of_all_tokens_only_where_those_were_stored(make_case, tmp_path):
    case, opened = make_case("llama"), {}
    for asked in ("sample", "all"):
        with captured(case, tmp_path / asked, moments_tokens=asked) as stores:
            moments_root = zarr.open_group(tmp_path / asked / "moments" / "store.zarr", mode="r+")
            moments_root.attrs["moments_tokens"] = asked
            opened[asked] = Analysed(stores["cache"], moments_root, [], ()).tokens("b0")
    assert isinstance(opened["sample"], Bucket)
    assert opened["sample"].sites == opened["all"].sites
    assert opened["all"].whole("embed", "activation").n > opened["sample"].activations.shape[1]
