"""Every format gives back the arrays that were dumped; objects are refused unread, damage is named."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
import zarr
from safetensors.torch import save_file

from dumped import FORMATS, arrays, write
from isotrace.errors import DataError
from isotrace.vectors.readers import open_dump


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("ending", FORMATS)
def test_arrays_read_back_whole_and_a_site_at_a_time(tmp_path, ending):
    content = arrays()
    dump = open_dump(write(tmp_path / f"step_3{ending}", content))
    assert dump.names() == sorted(content)
    for name, values in content.items():
        assert dump.about(name) == (values.shape, values.dtype.name)
        assert np.array_equal(dump.read(name), values)
        assert all(file.is_file() for file in dump.files(name))
    for site in range(2):
        assert np.array_equal(dump.read("acts", site), content["acts"][site])
        assert np.array_equal(dump.read("grads", site), content["grads"][site])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_both_formats_of_zarr(tmp_path, zarr_format):
    path, values = tmp_path / "a.zarr", arrays()["acts"]
    zarr.open_group(path, mode="w", zarr_format=zarr_format).create_array("acts", data=values)
    assert np.array_equal(open_dump(path).read("acts", 1), values[1])


def test_bfloat16_is_read_without_loss(tmp_path):
    values = torch.from_numpy(arrays()["acts"]).bfloat16()
    save_file({"acts": values}, tmp_path / "a.safetensors")
    dump = open_dump(tmp_path / "a.safetensors")
    assert dump.about("acts")[1] == "bfloat16"
    assert np.array_equal(dump.read("acts"), values.float().numpy())
    assert np.array_equal(dump.read("acts", 1), values[1].float().numpy())


@pytest.mark.parametrize("ending", ["", ".npz"])
def test_objects_are_refused_unread(tmp_path, ending):
    trap = tmp_path / "trap"
    dump = open_dump(write(tmp_path / f"d{ending}", {"acts": np.array([Bomb(trap)], dtype=object)}))
    with pytest.raises(DataError, match="holds Python objects, which are never unpickled"):
        dump.read("acts")
    assert not trap.exists()


@pytest.mark.parametrize("dtype", ["|O", "<f4"])
def test_a_pickle_codec_of_zarr_is_refused_unread(tmp_path, dtype):
    trap, place = tmp_path / "trap", tmp_path / "d.zarr" / "acts"
    place.mkdir(parents=True)
    filters = '[{"id": "pickle", "protocol": 5}]'
    known = '"zarr_format": 2, "shape": [1], "chunks": [1], "compressor": null, "fill_value": null, "order": "C"'
    (place / ".zarray").write_text(f'{{{known}, "dtype": "{dtype}", "filters": {filters}}}')
    (place / "0").write_bytes(pickle.dumps(Bomb(trap)))
    with pytest.raises(DataError, match="never unpickled"):
        open_dump(tmp_path / "d.zarr").read("acts")
    assert not trap.exists()


@pytest.mark.parametrize("ending", FORMATS)
def test_a_truncated_dump_is_named(tmp_path, ending):
    path = write(tmp_path / f"d{ending}", {"acts": arrays()["acts"]})
    file = path
    if path.is_dir():
        file = max((f for f in path.rglob("*") if f.is_file()), key=lambda f: f.stat().st_size)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(DataError, match="truncated or not readable") as error:
        open_dump(path).read("acts")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ending", FORMATS)
def test_an_array_that_is_not_there_is_named_with_those_that_are(tmp_path, ending):
    dump = open_dump(write(tmp_path / f"d{ending}", {"acts": arrays()["acts"], "ids": arrays()["ids"]}))
    with pytest.raises(DataError, match=r"no array 'h'; there are acts, ids"):
        dump.about("h")


def test_a_dump_that_went_away(tmp_path):
    with pytest.raises(DataError, match="gone since it was found"):
        open_dump(tmp_path / "step_1")
