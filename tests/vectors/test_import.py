"""The stores of an imported dump hold its rows, their moments and what the dump lacks; analyses say so."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from dumped import LENGTH, SEQUENCES, arrays, bare, config, model, write
from isotrace.analysed import Analysed, read_previous
from isotrace.bases import fit_bases, write_bases
from isotrace.encoding import rounded
from isotrace.geometry.companions import geometry_table
from isotrace.geometry.energy import energy_table
from isotrace.geometry.moments import moments
from isotrace.params import Params
from isotrace.readers import missing_of, read_bucket, read_moments
from isotrace.results import write_stage
from isotrace.store import open_store, read_manifest, write_json
from isotrace.study import load
from isotrace.tables import read
from isotrace.vectors.audit import audit_dump
from isotrace.vectors.frequency import dumped_frequency
from isotrace.vectors.run import import_dump

STEPS = (0, 10, 90)


def imported(folder, entry, contents, edits=None, ending=".npz"):
    """Params of a study of one model ``m``, all its checkpoints imported below ``folder``."""
    for step, content in zip(STEPS, contents, strict=True):
        write(folder / f"step_{step}{ending}", content)
    raw = config({"m": entry(f"{folder}/step_{{step}}{ending}")}) | (edits or {})
    params = Params(load(raw))
    for checkpoint in params.study.series["m"].ids:
        spec = params.audit_vectors("m", checkpoint)
        audit = folder / "checkpoints" / f"{checkpoint}.json"
        write_json(audit, audit_dump(spec["folder"], spec | {"source": {"path": spec["folder"]}}))
        stores = {name: folder / name / f"{checkpoint}.json" for name in ("cache", "moments", "heads")}
        import_dump(audit, **stores, spec=params.vectors("m", checkpoint))
    return params


def analysed(folder, params, checkpoint, stage, buckets):
    """What a stage opens, with the fixed basis fitted from the early checkpoints."""
    spec = params.analysis(stage, "m") | {"kinds": ["fixed"]}
    path = folder / "pca.nc"
    if not path.exists():
        manifests = [folder / "moments" / f"step{s}.json" for s in STEPS[:2]]
        fixed, left_out, attributes = fit_bases(manifests, [], params.bases("m", "pca"))
        write_bases(path, fixed, left_out, attributes)
    inputs = SimpleNamespace(
        cache=folder / "cache" / f"{checkpoint}.json", moments=folder / "moments" / f"{checkpoint}.json", bases=[path]
    )
    return Analysed.open(inputs, spec, buckets), spec


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, imported(folder, model, [arrays(s) for s in STEPS])


@pytest.fixture(scope="module")
def scarce(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scarce")
    return folder, imported(folder, bare, [{"acts": arrays(s)["acts"]} for s in STEPS])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_are_the_dumps_own(tmp_path, dtype):
    imported(tmp_path, model, [arrays(s) for s in STEPS], {"store": {"dtype": dtype}})
    content, root = arrays(90), open_store(tmp_path / "cache/step90.json")
    for bucket in ("b0", "b1"):
        rows = read_bucket(root, bucket, "eval")
        at = rows.sequence * LENGTH + rows.position
        assert np.array_equal(rows.activations, rounded(content["acts"][:, at], dtype))
        assert np.array_equal(rows.gradients, rounded(content["grads"][:, at], dtype))
        for name, dumped in (("token_id", "ids"), ("loss", "nats")):
            assert np.array_equal(getattr(rows, name), content[dumped][at])
        assert len(at) == len(set(at.tolist()))


def test_moments_are_those_of_the_rows_and_fit_and_eval_share_no_sequence(whole):
    folder, _ = whole
    root, sums = open_store(folder / "cache/step10.json"), open_store(folder / "moments/step10.json")
    fit, evaluation = (read_bucket(root, "b0", split) for split in ("fit", "eval"))
    assert not set(fit.sequence) & set(evaluation.sequence)
    for split, rows in (("fit", fit), ("eval", evaluation)):
        for i, site in enumerate(rows.sites):
            found = read_moments(sums, "b0", split, "gradient")[site]
            expected = moments(rows.gradients[i].astype(np.float64))
            assert found.n == expected.n
            assert np.allclose(found.scatter, expected.scatter, rtol=1e-5, atol=1e-4)


def test_stores_open_as_any_other_and_attention_is_a_tombstone(whole):
    folder, _ = whole
    with xr.open_datatree(folder / "cache/step0/store.zarr", engine="zarr") as tree:
        assert tree["b0"].to_dataset()["activations"].dims == ("site", "token", "feature")
        assert tree.attrs["loss_reduction"] == "unknown"
        assert tree["counts"].dims == ("id",)
    assert read_manifest(folder / "heads/step0.json")["reason"] == "dumped vectors hold no attention"
    assert missing_of(folder / "cache/step0.json") == {}


def test_the_same_positions_at_every_checkpoint(whole):
    folder, _ = whole
    manifests = [read_manifest(folder / f"cache/step{s}.json") for s in STEPS]
    assert len({m["attributes"]["sample_digest"] for m in manifests}) == 1


def test_a_format_changes_no_file_of_the_stores(tmp_path, whole):
    imported(tmp_path, model, [arrays(s) for s in STEPS], ending=".zarr")
    for store in ("cache", "moments"):
        files = [read_manifest(folder / store / "step10.json")["files"] for folder in (tmp_path, whole[0])]
        assert files[0] == files[1]


def test_what_a_dump_lacks_is_the_reason_of_its_rows(tmp_path, scarce):
    folder, params = scarce
    opened, spec = analysed(folder, params, "step90", "energy", ["all"])
    rows = opened.tokens("all")
    energy = opened.told(energy_table(rows, opened.bases, spec, variance={}), "energy")
    spec = params.analysis("geometry", "m")
    geometry = opened.told(geometry_table(rows, opened.bases, spec), "geometry")
    for stage, frame in (("energy", energy), ("geometry", geometry)):
        write_stage(tmp_path / f"{stage}.parquet", frame, stage, opened.sites)
        table = read(tmp_path / f"{stage}.parquet")
        lacking = table[table["quantity"] == "gradient"]
        assert set(lacking["reason"]) == {"the dump holds no gradients"}
        assert lacking["energy" if stage == "energy" else "value"].isna().all()
        there = table[table["quantity"] == "activation"]
        there = there[there["metric"] != "loss"] if stage == "geometry" else there
        assert there["energy" if stage == "energy" else "value"].notna().all()
    assert set(geometry[geometry["metric"] == "loss"]["reason"]) == {"the dump holds no losses"}


def test_frequency_of_what_was_dumped(whole, scarce):
    folder, params = whole
    table = dumped_frequency(folder / "cache/step90.json", params.frequency("m"))
    static, contextual = (table[table["kind"] == kind] for kind in ("static", "contextual"))
    assert set(static["reason"]) == {"the model has no input embedding"}
    assert contextual["spearman"].between(-1, 1).all()
    assert set(contextual["site"]) == {"block.0", "block.1"}
    folder, params = scarce
    table = dumped_frequency(folder / "cache/step90.json", params.frequency("m"))
    assert set(table[table["kind"] == "contextual"]["reason"]) == {"the dump holds no token ids"}
    assert table["spearman"].isna().all()


def test_displacement_is_measured_where_rows_agree_and_refused_where_they_differ(tmp_path, whole):
    other = arrays(90)
    other["ids"] = np.random.default_rng(3).permutation(other["ids"])
    params = imported(tmp_path, model, [arrays(0), arrays(10), other])
    found = {}
    for folder in (tmp_path, whole[0]):
        opened, spec = analysed(folder, params, "step90", "geometry", ["b0"])
        before = [str(folder / "cache/step10.json")]
        previous, refused = read_previous(before, "b0", opened.cache)
        table = geometry_table(opened.tokens("b0"), opened.bases, spec, previous=previous, refused=refused)
        found[folder] = table[table["metric"] == "displacement_in_tangent"]
    assert found[tmp_path]["value"].isna().all()
    assert all("step10 holds other rows" in reason for reason in found[tmp_path]["reason"])
    assert len(found[tmp_path]) == len(found[whole[0]]) == 2
    assert found[whole[0]]["value"].between(0, 1).all()


def test_a_broken_dump_seals_three_tombstones(tmp_path):
    wrong = arrays(10)
    wrong["acts"][0, 0, 0] = np.nan
    imported(tmp_path, model, [arrays(0), wrong, arrays(90)])
    for store in ("cache", "moments", "heads"):
        content = json.loads((tmp_path / store / "step10.json").read_text())
        assert (content["status"], content["files"]) == ("tombstone", {})
        assert "1 rows of acts at block.0 are not finite" in content["reason"]


def test_independent_rows_are_dealt_one_by_one(scarce):
    folder, _ = scarce
    root = open_store(folder / "cache/step0.json")
    rows = [read_bucket(root, "all", split).sequence for split in ("fit", "eval")]
    assert [len(set(r)) for r in rows] == [100, 120]
    assert not set(rows[0]) & set(rows[1])
    assert max(map(max, rows)) < SEQUENCES * LENGTH
