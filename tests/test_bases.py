"""Bases of sites and of what linear maps read: fitted from sealed moments, written, read back."""

import numpy as np
import pytest
import xarray as xr

from isotrace.bases import fit_bases, joined, moving_basis, moving_maps, read_bases, write_bases, write_moving
from isotrace.capture.moments_store import write_moments
from isotrace.errors import DataError
from isotrace.geometry.moments import empty, moments
from isotrace.geometry.subspaces import principal_angles
from isotrace.store import create, open_store
from isotrace.weight_moments import map_inputs, read_weights
from sealed import MAKING

D, N, RANK = 8, 60, 2
SITES = ("embed", "block.0", "block.1")
BUCKETS = ("b0", "b1")
READS = {
    "block.0:q": "block.0:q",
    "block.0:k": "block.0:q",
    "block.0:up": "block.0:up",
    "block.1:q": "block.1:q",
    "block.1:k": "block.1:q",
}
EARLY = ["step0", "step4", "step8"]
SPEC = {
    "seed": 0,
    "method": "pca",
    "kinds": ["fixed", "leave_one_out"],
    "rank": RANK,
    "rank_max": RANK,
    "early": EARLY,
    "buckets": list(BUCKETS),
    "pool_center": "global",
    "pool_scale": "none",
}
FIT, EVAL = 0, 1


def rows_of(checkpoint, bucket, split, place):
    """Rows (n, d) that a site gave or a map read; each place has its own two directions of large variance."""
    rng = np.random.default_rng([EARLY.index(checkpoint), BUCKETS.index(bucket), split, len(place), ord(place[-1])])
    spread = np.ones(D)
    spread[[ord(place[-1]) % D, (ord(place[-1]) + 3) % D]] = 9, 5
    return rng.standard_normal((N, D)) * spread + EARLY.index(checkpoint)


def gradient_of(checkpoint, bucket, name):
    return np.random.default_rng([len(name), ord(name[-1]), BUCKETS.index(bucket)]).standard_normal((5, D))


def written(folder, checkpoint, reads=READS):
    """A sealed moments store as capture leaves it."""
    manifest = folder / f"{checkpoint}.json"
    parts = [list(dict.fromkeys(name.split(":")[1] for name in names)) for names in (reads, reads.values())]
    quantities = ["activation", "gradient", *(f"weight_gradient:{p}" for p in parts[0])]
    quantities += [f"weight_input:{p}" for p in parts[1]]
    attributes = {"tensors_digest": checkpoint} | ({"map_inputs": reads} if reads else {})
    with create(manifest, attributes, MAKING) as root:
        for bucket in BUCKETS:
            found = {}
            for split in (FIT, EVAL):
                for site in SITES:
                    found[split, "activation", site] = moments(rows_of(checkpoint, bucket, split, site))
                for reader in set(reads.values()):
                    site, part = reader.split(":")
                    found[split, f"weight_input:{part}", site] = moments(rows_of(checkpoint, bucket, split, reader))
            for name in reads:
                site, part = name.split(":")
                found[EVAL, f"weight_gradient:{part}", site] = moments(gradient_of(checkpoint, bucket, name))
            group = root.create_group(bucket)
            write_moments(group, SITES, quantities, D, found.items())
            group.attrs["weight_tokens"] = {name: N - i for i, name in enumerate(reads)}
    return manifest


@pytest.fixture
def manifests(tmp_path):
    return [written(tmp_path, checkpoint) for checkpoint in EARLY]


def directions(rows):
    """The leading principal directions (d, k) of rows, by singular values."""
    return np.linalg.svd(rows - rows.mean(axis=0))[2][:RANK].T


def assert_same_span(a, b):
    assert principal_angles(a, b).max() < 1e-3


def test_a_maps_basis_is_that_of_the_rows_it_read(manifests):
    fixed, left_out, _ = fit_bases(manifests, [], SPEC)
    assert fixed.sites == (*SITES, *READS)
    for place in (*SITES, *READS):
        read = READS.get(place, place)
        rows = [[rows_of(c, b, FIT, read) for b in BUCKETS] for c in EARLY]
        assert_same_span(fixed.at(place, RANK), directions(np.concatenate([r for listed in rows for r in listed])))
        without = np.concatenate([r for listed in rows[1:] for r in listed])
        assert_same_span(left_out["step0"].at(place, RANK), directions(without))
    assert fixed.n_tokens.tolist() == [N * 6] * len(fixed.sites)
    assert principal_angles(fixed.at("block.0:q", RANK), fixed.at("block.0", RANK)).max() > 0.5
    assert principal_angles(fixed.at("block.0:q", RANK), fixed.at("block.0:up", RANK)).max() > 0.5


def test_maps_that_read_the_same_share_a_basis(manifests):
    [moving] = moving_maps(manifests[1], ["pca"], SPEC)
    assert (moving.kind, moving.sites) == ("moving", tuple(READS))
    assert np.array_equal(moving.at("block.1:k", RANK), moving.at("block.1:q", RANK))
    rows = np.concatenate([rows_of("step4", b, FIT, "block.0:q") for b in BUCKETS])
    assert_same_span(moving.at("block.0:k", RANK), directions(rows))


def test_bases_of_sites_do_not_depend_on_maps(manifests, tmp_path):
    (tmp_path / "bare").mkdir()
    bare = [written(tmp_path / "bare", checkpoint, {}) for checkpoint in EARLY]
    alone, _, _ = fit_bases(bare, [], SPEC)
    both, _, _ = fit_bases(manifests, [], SPEC)
    assert alone.sites == SITES
    assert np.array_equal(alone.vectors, both.vectors[: len(SITES)])
    assert moving_maps(bare[0], ["pca"], SPEC) == []
    write_bases(tmp_path / "bare.nc", alone, {}, {})
    with xr.open_dataset(tmp_path / "bare.nc", engine="h5netcdf") as file:
        assert set(file.variables) == {"site", "basis", "explained_variance", "n_tokens"}
    [read] = read_bases(tmp_path / "bare.nc", "step0", ["fixed"])
    assert read.sites == SITES


def test_methods_that_need_rows_leave_maps_out(manifests):
    assert moving_maps(manifests[0], ["semi_nmf"], SPEC) == []
    assert [basis.method for basis in moving_maps(manifests[0], ["semi_nmf", "svd"], SPEC)] == ["svd"]


def test_a_file_reads_back_exactly_and_opens_as_a_dataset(manifests, tmp_path):
    fixed, left_out, attributes = fit_bases(manifests, [], SPEC)
    write_bases(tmp_path / "pca.nc", fixed, left_out, attributes)
    first, second = read_bases(tmp_path / "pca.nc", "step4", ["fixed", "leave_one_out", "moving"])
    for read, known in ((first, fixed), (second, left_out["step4"])):
        assert (read.kind, read.method, read.sites) == (known.kind, known.method, known.sites)
        assert np.array_equal(read.vectors, known.vectors)
    assert len(read_bases(tmp_path / "pca.nc", "step99", ["fixed", "leave_one_out"])) == 1
    with xr.open_dataset(tmp_path / "pca.nc", engine="h5netcdf") as file:
        assert file["basis"].dims == ("site", "feature", "component")
        assert file["map_basis"].dims == ("map", "feature", "component")
        assert file["map_leave_one_out"].dims == ("checkpoint", "map", "feature", "component")
        assert file["map"].values.tolist() == list(READS)
        assert file["map_n_tokens"].values.tolist() == [N * 6] * len(READS)
        assert file["map_explained_variance"].shape == (len(READS), RANK)
        assert file.attrs["early_checkpoints"] == "step0 step4 step8"


def test_moving_bases_are_gathered_with_those_of_maps(manifests, tmp_path):
    bases = {m.stem: joined(moving_basis(m, None, "pca", SPEC), moving_maps(m, ["pca"], SPEC)) for m in manifests}
    write_moving(tmp_path / "moving.nc", bases, {})
    with xr.open_dataset(tmp_path / "moving.nc", engine="h5netcdf") as file:
        assert file["basis"].dims == ("checkpoint", "site", "feature", "component")
        assert file["map_basis"].sel(checkpoint="step4", map="block.0:q").shape == (D, RANK)
        rows = np.concatenate([rows_of("step8", b, FIT, "block.0:up") for b in BUCKETS])
        assert_same_span(file["map_basis"].sel(checkpoint="step8", map="block.0:up").values, directions(rows))


def test_weights_are_read_with_their_inputs_and_tokens(manifests):
    root = open_store(manifests[0])
    found = read_weights(root, "b1")
    assert list(found) == list(READS)
    assert map_inputs(root) == READS
    gradient = gradient_of("step0", "b1", "block.0:k")
    np.testing.assert_allclose(
        found["block.0:k"].gradient.second_moment, gradient.T @ gradient / 5, rtol=1e-5, atol=1e-6
    )
    inputs = np.cov(rows_of("step0", "b1", EVAL, "block.0:q"), rowvar=False)
    np.testing.assert_allclose(found["block.0:k"].inputs.covariance, inputs, rtol=1e-5, atol=1e-5)
    assert [found[name].tokens for name in READS] == [N - i for i in range(len(READS))]


def test_a_map_that_read_nothing_in_a_bucket_has_empty_inputs(tmp_path):
    with create(tmp_path / "step0.json", {"map_inputs": {"block.0:q": "block.0:q"}}, MAKING) as root:
        group = root.create_group("b0")
        place = (EVAL, "weight_gradient:q", "block.0")
        quantities = ["activation", "gradient", "weight_gradient:q", "weight_input:q"]
        write_moments(group, SITES, quantities, D, [(place, moments(np.zeros((5, D))))])
        group.attrs["weight_tokens"] = {"block.0:q": 0}
    found = read_weights(open_store(tmp_path / "step0.json"), "b0")["block.0:q"]
    assert (found.tokens, found.inputs.n, found.inputs.d) == (0, empty(D).n, D)


def test_one_early_checkpoint_is_not_enough(manifests):
    with pytest.raises(DataError, match="only 1 early checkpoint"):
        fit_bases(manifests[:1], [], SPEC)
