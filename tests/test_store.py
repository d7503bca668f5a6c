"""Sealed stores: exact round trips, openings as outside tools do them, and what is no store any more."""

import warnings

import numpy as np
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isotrace.cli import main
from isotrace.store import create, differences, open_store, put, read_manifest, store_path
from sealed import MAKING, ROWS, write


def test_what_was_put_comes_back_by_xarray_and_by_plain_zarr(tmp_path):
    store = store_path(write(tmp_path / "step8.json", attributes={"model": "m", "step": 8, "tokens_seen": None}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_datatree(store, engine="zarr") as tree:
            bucket = tree["b1"].to_dataset().load()
            assert tree.attrs == {"model": "m", "step": 8, "tokens_seen": None}
        plain = zarr.open_group(store, mode="r")
    np.testing.assert_array_equal(bucket["activations"].values, ROWS)
    assert bucket["activations"].dims == ("site", "token", "feature")
    assert bucket["activations"].dtype == np.float32
    assert list(bucket["site"].values) == ["embed", "block.0"]
    assert bucket["token_id"].attrs["units"] == "tokens"
    assert "token_id" in bucket.coords
    np.testing.assert_array_equal(plain["b0"]["activations"][...], ROWS)
    assert plain.metadata.zarr_format == 3


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=7)
dtypes = st.sampled_from(["float32", "float64", "int32", "int64", "int16", "int8", "bool"])


@settings(max_examples=60)
@given(data=st.data(), shape=shapes, dtype=dtypes)
def test_any_array_comes_back_to_the_bit(tmp_path_factory, data, shape, dtype):
    values = data.draw(hnp.arrays(dtype, shape))
    manifest = tmp_path_factory.mktemp("any") / "s.json"
    dims = tuple(f"d{i}" for i in range(len(shape)))
    with create(manifest, {}, MAKING) as root:
        put(root, "x", values, dims)
    found = open_store(manifest)["x"]
    assert found[...].tobytes() == values.tobytes()
    assert found.shape == shape
    assert found.metadata.dimension_names == dims


def test_one_site_can_be_read_without_the_others(tmp_path):
    rows = np.random.default_rng(0).standard_normal((4, 300, 8)).astype(np.float32)
    array = open_store(write(tmp_path / "s.json", rows))["b0"]["activations"]
    assert array.chunks == (1, 300, 8)
    assert array.shards == (4, 300, 8)
    np.testing.assert_array_equal(array[2], rows[2])


def test_names_may_be_long_and_in_any_script(tmp_path):
    name = "模型-é" * 20
    folder = tmp_path / ("ключ" * 20)
    attributes = {"model": name, "reason": "naïve \N{SNOWMAN}"}
    with create(folder / "step1.json", attributes, MAKING) as root:
        put(root.create_group("b0"), "site", np.array([name, ""]), ("site",))
    assert open_store(folder / "step1.json").attrs["model"] == name
    assert list(open_store(folder / "step1.json")["b0"]["site"][...]) == [name, ""]
    assert name in (folder / "step1.json").read_text(encoding="utf-8")
    assert main(["verify", str(tmp_path)]) == 0


def test_arrays_of_zeros_are_sealed_like_others(tmp_path, capsys):
    manifest = write(tmp_path / "s.json", np.zeros_like(ROWS))
    assert differences(manifest, read_manifest(manifest)) == []
    np.testing.assert_array_equal(open_store(manifest)["b0"]["activations"][...], 0)
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 stores, 0 differ from their manifest\n"
