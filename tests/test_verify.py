"""Stores against the config and code that should have made them."""

from pathlib import Path

import numpy as np
import pytest

from dumped import arrays, config, model, write
from isotrace.errors import DataError
from isotrace.params import Params
from isotrace.store import create, fingerprint, manifests_below, put, store_path
from isotrace.study import Study, read, validated
from isotrace.verify import findings

CONFIG = Path(__file__).parents[1] / "config" / "smoke.yaml"


@pytest.fixture
def study() -> Study:
    return read(CONFIG)


def sealed(results: Path, spec: dict) -> Path:
    manifest = results / "cache" / "decoder" / "step3.json"
    with create(manifest, {"step": 3}, fingerprint(spec)) as root:
        put(root, "loss", np.ones(5), ("token",))
    return manifest


def test_a_store_of_this_config_and_code_has_no_finding(tmp_path: Path, study: Study) -> None:
    manifest = sealed(tmp_path, Params(study).capture("decoder", "step3"))
    assert findings(manifest, study, tmp_path) == []
    assert findings(manifest) == []


@pytest.mark.parametrize(("change", "what"), [({"batch_size": 99}, "config"), ({"code": "0" * 16}, "code")])
def test_another_config_or_code_is_named(tmp_path: Path, study: Study, change: dict, what: str) -> None:
    manifest = sealed(tmp_path, Params(study).capture("decoder", "step3") | change)
    assert findings(manifest, study, tmp_path) == [f"was made with another {what} than the present one"]
    assert findings(manifest) == []


def test_the_params_compared_are_those_of_the_rule_that_fills_the_store(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "dumps" / "step_3.npz", arrays(3))
    write(tmp_path / "dumps" / "step_10.npz", arrays(10))
    study = validated(config({"decoder": model("dumps/step_{step}.npz")}))
    manifest = sealed(tmp_path, Params(study).vectors("decoder", "step3"))
    assert findings(manifest, study, tmp_path) == []


def test_what_the_study_does_not_write_is_only_compared_with_itself(tmp_path: Path, study: Study) -> None:
    manifest = sealed(tmp_path, Params(study).capture("decoder", "step3")).rename(tmp_path / "cache" / "other.json")
    store_path(tmp_path / "cache" / "decoder" / "step3.json").parent.rename(tmp_path / "cache" / "other")
    assert findings(manifest, study, tmp_path) == []


def test_an_unsealed_store_is_a_finding_beside_the_others(tmp_path: Path) -> None:
    assert "not a sealed store" in findings(tmp_path / "step3.json")[0]


def test_a_store_is_found_by_its_manifest_its_folder_or_anything_inside(tmp_path: Path, study: Study) -> None:
    manifest = sealed(tmp_path, Params(study).capture("decoder", "step3"))
    inside = store_path(manifest)
    for path in (manifest, inside.parent, inside, inside / "loss" / "zarr.json", tmp_path):
        assert manifests_below(path) == [manifest]
    with pytest.raises(DataError, match="no such store or folder"):
        manifests_below(tmp_path / "elsewhere")
