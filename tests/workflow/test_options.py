"""Options of capture and store through real runs of Snakemake, and series of families that the smoke study lacks."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
import transformers
import xarray as xr
import yaml
import zarr
from running import Study

from isotrace.encoding import rounded
from isotrace.stored_rows import read_rows

BUCKETS = ("b0", "b1")
KEY = ["site", "bucket", "quantity", "basis", "method", "rank", "null_space"]
SITES = {"embed": "gpt_neox.embed_in", "blocks": "gpt_neox.layers", "final_norm": "gpt_neox.final_layer_norm"}
MAPS = ("attention.query_key_value", "mlp.dense_h_to_4h")


@pytest.fixture
def decoder(smoke: Study, tmp_path: Path) -> Study:
    """A copy of the finished study's results, under a config with the decoder alone."""
    shutil.copytree(smoke.folder, tmp_path / "run")
    raw = yaml.safe_load(smoke.config.read_text())
    del raw["models"]["encoder"]
    return replace(smoke, folder=tmp_path / "run").written(raw)


def verified(study: Study, *paths: str) -> None:
    """Stores below paths are what was sealed, and were made by this config and code."""
    command = [sys.executable, "-m", "isotrace", "verify", *paths, "--configfile", str(study.config)]
    result = subprocess.run(command, cwd=study.folder, env=study.environment(), capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert "0 differ" in result.stdout


def bucket_of(study: Study, kind: str, bucket: str) -> Any:
    return zarr.open_group(study.at(f"{kind}/decoder/step3/store.zarr"), mode="r")[bucket]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "largest"), [("float16", 1e-3), ("bfloat16", 2**-8)])
def test_rows_stored_in_sixteen_bits(smoke: Study, decoder: Study, dtype, largest):
    """What reads back is the float32 run's row, rounded; energy stays within a hundredth of it."""
    study = decoder.changed({"store.dtype": dtype})
    study.done("results/energy/decoder/step3/b0.parquet")
    for bucket in BUCKETS:
        group, exact = (bucket_of(s, "cache", bucket) for s in (study, smoke))
        for name in ("activations", "gradients"):
            assert np.array_equal(read_rows(group, name), rounded(read_rows(exact, name), dtype))
            assert group[name].attrs["stored_dtype"] == dtype
            assert 0 < group[name].attrs["max_relative_error"] < largest
            assert group[name].dtype == (np.float16 if dtype == "float16" else np.float32)
            assert (f"{name}_scale" in group) == (dtype == "float16")
        file = f"energy/decoder/step3/{bucket}.parquet"
        found, expected = (pd.read_parquet(s.at(file)).set_index(KEY) for s in (study, smoke))
        assert found.index.equals(expected.index)
        for column in ("energy", "enrichment", "energy_lo", "energy_hi", "null_mean_exact", "null_sd_exact"):
            assert np.allclose(found[column], expected[column], rtol=0.01, atol=0, equal_nan=True)
        assert not found["energy"].equals(expected["energy"])
    with xr.open_datatree(study.at("cache/decoder/step3/store.zarr"), engine="zarr") as tree:
        assert tree["b0"]["activations"].dims == ("site", "token", "feature")
    verified(study, "results/cache/decoder/step3", "results/moments/decoder/step3")


@pytest.mark.slow
def test_moments_of_all_tokens_and_of_weight_gradients(smoke: Study, decoder: Study):
    study = decoder.changed({"capture.moments_tokens": "all", "capture.weight_gradients": "moments"})
    study.done("results/tables/energy.parquet", "results/bases/decoder/pca-moving.nc")
    positions = zarr.open_group(study.at("sample/decoder/store.zarr"), mode="r")
    tested = positions["position_bucket"][...][positions["pass_split"][...] == 1]
    maps = [f"block.{i}:{name}" for i in (0, 1) for name in MAPS]
    for b, bucket in enumerate(BUCKETS):
        moments = bucket_of(study, "moments", bucket)
        n = dict(zip(moments["quantity"][...], moments["n"][1], strict=True))  # evaluation, by quantity: (site,)
        assert (n["activation"] == np.sum(tested == b)).all()
        assert (n["activation"] > bucket_of(smoke, "moments", bucket)["n"][1, 0]).all()
        # The rows that are cached are drawn as before.
        for name in ("sequence", "position", "activations"):
            cached, before = (bucket_of(s, "cache", bucket)[name][...] for s in (study, smoke))
            assert np.array_equal(cached, before)
        assert moments.attrs["weight_tokens"] == dict.fromkeys(maps, int(np.sum(tested == b)))
    energy = study.table("energy")
    assert set(energy["checkpoint"]) == {"step0", "step3", "step10"}
    for name in MAPS:
        rows = energy[energy["quantity"] == f"weight_gradient:{name}"]
        assert set(rows["site"]) == {"block.0", "block.1"}
        assert set(rows["bucket"]) == set(BUCKETS)
        assert set(rows["basis"]) == {"fixed", "moving", "leave_one_out"}
        assert rows["energy"].between(0, 1).all()
    for file in ("pca", "random", "pca-moving"):
        with h5py.File(study.at(f"bases/decoder/{file}.nc")) as bases:
            assert [name.decode() for name in bases["map"][...]] == maps
            vectors = bases["map_basis"][...]  # (map, d, k), of every checkpoint where moving
            assert np.allclose(np.swapaxes(vectors, -1, -2) @ vectors, np.eye(vectors.shape[-1]), atol=1e-10)
    verified(study, "results")


def stored_arrays(study: Study, kind: str) -> dict[str, Any]:
    """Digests of the array data of a checkpoint's store; its attributes name the config."""
    files = json.loads(study.at(f"{kind}/decoder/step3.json").read_text())["files"]
    return {name: file for name, file in files.items() if "/c/" in name}


@pytest.mark.slow
def test_declared_modules_give_the_rows_that_are_found_without(smoke: Study, decoder: Study):
    target = "results/cache/decoder/step3.json"
    result = decoder.changed({"models.decoder.modules": {**SITES, "blocks": "gpt_neox.h"}}).snakemake(target)
    assert result.returncode == 1
    assert "Traceback" not in result.stdout
    lines = {line.strip() for line in result.stdout.splitlines() if line.startswith("isotrace: error: ")}
    said = "isotrace: error: models.decoder.modules.blocks: 'gpt_neox.h' is no module of GPTNeoXForCausalLM"
    assert lines == {said}
    assert not decoder.at("cache/decoder/step3.json").exists()
    decoder.changed({"models.decoder.modules": SITES}).done(target)
    for kind in ("cache", "moments", "attention"):
        assert stored_arrays(decoder, kind) == stored_arrays(smoke, kind) != {}


SHARED = {"vocab_size": 512, "decoder_start_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5ForConditionalGeneration", {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}),
    "bert": (
        "BertForMaskedLM",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    ),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
    ),
}
OBJECTIVES = {"t5": "mlm", "bert": "mlm", "gpt_neo": "clm"}
TOKENIZERS = {"mlm": "encoder", "clm": "decoder"}


def save_series(smoke: Study, folder: Path, family: str) -> None:
    """Two untrained models of a family, saved as checkpoints of a training of ten steps."""
    name, fields = FAMILIES[family]
    for step in (0, 3):
        torch.manual_seed(step)
        config = transformers.AutoConfig.for_model(family, **SHARED, **fields)
        to = folder / f"checkpoint-{step}"
        getattr(transformers, name)(config).save_pretrained(to)
        tokenizer = smoke.at(f"weights/{TOKENIZERS[OBJECTIVES[family]]}/tokenizer")
        shutil.copytree(tokenizer, to, dirs_exist_ok=True)


def series_of(smoke: Study, decoder: Study, *families: str) -> Study:
    """A study of such series, on the corpus that is read already."""
    raw = yaml.safe_load(decoder.config.read_text())
    raw["models"], raw["execution"]["batch_audits"] = {}, True
    for family in families:
        save_series(smoke, decoder.folder / family, family)
        source = {"kind": "local", "path": f"{family}/checkpoint-{{step}}"}
        raw["models"][family.replace("_", "-")] = {"objective": OBJECTIVES[family], "total_steps": 10, "source": source}
    return decoder.written(raw)


SITES_OF = {
    "t5": ["embed", "block.0", "block.1", "final_norm"],
    "bert": ["embed", "block.0", "block.1"],
    "gpt-neo": ["embed", "block.0", "block.1", "final_norm"],
}


@pytest.mark.slow
def test_an_encoder_decoder_reaches_the_tables(smoke: Study, decoder: Study):
    study = series_of(smoke, decoder, "t5")
    study.done("results/tables/energy.parquet", "results/tables/attention.parquet")
    energy = study.table("energy")
    assert set(energy["checkpoint"]) == {"step0", "step3"}
    assert list(dict.fromkeys(energy["site"])) == SITES_OF["t5"]
    assert (energy["energy"] > 0).all()
    attention = study.table("attention")
    assert set(attention["layer"]) == {0, 1}
    assert attention.loc[attention["query_bucket"] != "all", "entropy"].between(0, 1).all()
    verified(study, "results/cache/t5", "results/moments/t5", "results/attention/t5")


@pytest.mark.slow
def test_series_of_other_families_reach_every_table(smoke: Study, decoder: Study):
    """Where attention cannot be read the table says why; nothing else of such a family is missing."""
    study = series_of(smoke, decoder, *FAMILIES)
    study.done("tables")
    for name in ("energy", "isotropy", "geometry", "frequency", "attention"):
        assert set(study.table(name)["model"]) == set(SITES_OF)
    for name in ("energy", "isotropy"):
        table = study.table(name)
        for model, sites in SITES_OF.items():
            assert list(dict.fromkeys(table.loc[table["model"] == model, "site"])) == sites
    attention = study.table("attention")
    missing = attention[attention["model"] == "gpt-neo"]
    assert list(missing["checkpoint"]) == ["step0", "step3"]
    assert missing["reason"].str.contains("attention is not available").all()
    assert set(attention.loc[attention["model"] == "bert", "layer"]) == {0, 1}
    verified(study, *(f"results/{kind}/{model}" for kind in ("cache", "moments") for model in SITES_OF))
    assert study.planned("tables") == {}
