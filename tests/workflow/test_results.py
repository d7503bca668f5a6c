"""What one run of the smoke study leaves on disk: the files, stores and splits outside tools rely on."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import xarray as xr
import zarr

CHECKPOINTS = ("step0", "step3", "step10")
MODELS = ("decoder", "encoder")
BUCKETS = ("b0", "b1")
SITES = ["embed", "block.0", "block.1", "final_norm"]
FIGURES = (
    "energy_over_training",
    "isotropy_ablation",
    "early_late",
    "cosine_over_training",
    "frequency_geometry",
    "attention_over_training",
    "attention_sinks",
    "rank_curve",
    "alternatives",
    "subspace_overlap",
    "component_tokens",
    "cosine_by_depth",
    "toy",
    "loss_against_isotropy",
)
TABLES = (
    "energy",
    "controls",
    "rank_curve",
    "isotropy",
    "geometry",
    "frequency",
    "attention",
    "attention_intervals",
    "attention_mass",
    "subspaces",
    "components",
    "untrained",
    "dynamics",
    "claims",
    "audit",
)
LOCK_ENTRY = [
    "id",
    "step",
    "tokens_seen",
    "status",
    "reason",
    "source",
    "files",
    "tensors_digest",
    "tensor_digests",
    "dtype",
    "duplicate_of",
    "shared_tensors_with",
    "neighbour_distance",
]


def test_every_file_of_the_contract_exists(smoke):
    each = [(m, c) for m in MODELS for c in CHECKPOINTS]
    expected = ["corpus/wiki.json", "report.html", "runtime.csv"]
    expected += [f"tokens/{m}{end}" for m in MODELS for end in ("/store.zarr", ".json")]
    expected += [f"sample/{m}{end}" for m in MODELS for end in ("/store.zarr", ".json")]
    expected += [f"checkpoints/{m}.lock.json" for m in MODELS] + [f"checkpoints/{m}/{c}.json" for m, c in each]
    expected += [f"{k}/{m}/{c}{end}" for k in ("cache", "moments") for m, c in each for end in ("/store.zarr", ".json")]
    expected += [f"bases/{m}/{name}.nc" for m in MODELS for name in ("pca", "random", "pca-moving")]
    stages = ("energy", "controls", "rank_curve", "isotropy", "geometry")
    expected += [f"{s}/{m}/{c}/{b}.parquet" for s in stages for m, c in each for b in BUCKETS]
    expected += [f"{s}/{m}/{c}.parquet" for s in ("frequency", "attention") for m, c in each]
    expected += [f"{s}/{m}.parquet" for s in ("subspaces", "components") for m in MODELS]
    expected += [f"tables/{name}.{end}" for name in TABLES for end in ("parquet", "csv")]
    expected += [f"figures/{name}.{end}" for name in FIGURES for end in ("pdf", "png", "csv", "tex", "rst")]
    expected += [f"card/{m}.html" for m in MODELS]
    expected += [f"weights/{m}/checkpoint-{n}/model.safetensors" for m in MODELS for n in (0, 3, 10)]
    assert [path for path in expected if not smoke.at(path).exists()] == []


def test_nothing_is_written_outside_the_declared_folders(smoke):
    assert {p.name for p in smoke.folder.iterdir()} <= {".snakemake", "results", "logs", "benchmarks", "edited.yaml"}
    left = [p for p in smoke.folder.rglob("*") if re.search(r"\.part$|\.tmp$", p.name)]
    assert left == []
    inside = list(smoke.folder.rglob("store.zarr/**/.snakemake_timestamp"))
    assert inside == []


def test_locks_hold_what_the_contract_lists(smoke):
    for model in MODELS:
        lock = json.loads(smoke.at(f"checkpoints/{model}.lock.json").read_text())
        assert (lock["model"], lock["provider"], lock["total_steps"]) == (model, "train", 10)
        entries = lock["checkpoints"]
        assert [e["id"] for e in entries] == list(CHECKPOINTS)
        assert all(set(LOCK_ENTRY) <= set(e) for e in entries)
        assert {e["status"] for e in entries} == {"ok"}
        assert [e["findings"] for e in entries] == [[], [], []]
        assert len({e["tensors_digest"] for e in entries}) == 3
        assert all(set(e["source"]) == {"path", "revision", "subfolder", "commit"} for e in entries)


def test_stores_open_as_documented(smoke):
    for model in MODELS:
        cache = smoke.at(f"cache/{model}/step3/store.zarr")
        with xr.open_datatree(cache, engine="zarr") as tree:
            assert set(tree.children) == set(BUCKETS)
            bucket = tree["b0"].to_dataset()
            assert bucket["activations"].dims == bucket["gradients"].dims == ("site", "token", "feature")
            assert [str(s) for s in bucket["site"].values] == SITES
            rows = {"token_id", "sequence", "position", "target_id", "loss", "masked", "split"}
            assert rows <= set(bucket.coords)
            assert bucket["masked"].dtype == bool
            assert tree.attrs["loss_reduction"] == "sum"
            named = (
                "model checkpoint step tokens_seen objective compute_dtype source_dtype tensors_digest sample_digest"
            )
            assert set(named.split()) <= set(tree.attrs)
        with xr.open_datatree(smoke.at(f"moments/{model}/step3/store.zarr"), engine="zarr") as tree:
            moments = tree["b1"].to_dataset()
            assert moments["scatter"].dims[:3] == ("split", "quantity", "site")
            assert {"n", "mean", "scatter", "q3", "q4"} <= set(moments)
        with xr.open_dataset(smoke.at(f"bases/{model}/pca.nc"), engine="h5netcdf") as bases:
            assert bases["basis"].dims == ("site", "feature", "component")
            assert {"explained_variance", "n_tokens"} <= set(bases)
            assert bases.attrs["early_checkpoints"] == "step0 step3"
        with xr.open_dataset(smoke.at(f"bases/{model}/pca-moving.nc"), engine="h5netcdf") as moving:
            assert moving["basis"].dims == ("checkpoint", "site", "feature", "component")


def test_manifests_name_their_making(smoke):
    content = json.loads(smoke.at("cache/decoder/step3.json").read_text())
    needed = ["schema_version", "status", "reason", "attributes", "params_digest", "code_digest", "versions", "files"]
    assert set(needed) <= set(content)
    assert content["status"] == "ok"
    assert all(set(entry) == {"bytes", "sha256"} for entry in content["files"].values())
    assert {"torch", "transformers", "zarr", "numpy"} <= set(content["versions"])


def test_a_checkpoint_takes_few_files(smoke):
    assert len(json.loads(smoke.at("cache/decoder/step3.json").read_text())["files"]) <= 200


def test_nothing_fitted_on_is_tested_on_and_nothing_tested_was_trained_on(smoke):
    for model in MODELS:
        tokens = zarr.open_group(smoke.at(f"tokens/{model}/store.zarr"), mode="r")
        split = tokens["split"][...]
        seen = {0: set(), 1: set()}
        for bucket in BUCKETS:
            group = zarr.open_group(smoke.at(f"cache/{model}/step3/store.zarr"), mode="r")[bucket]
            sequence, part = group["sequence"][...], group["split"][...]
            assert (split[sequence] == part).all()
            for value in seen:
                seen[value] |= set(sequence[part == value].tolist())
        assert seen[0]
        assert seen[1]
        assert not seen[0] & seen[1]
        # Training reads split 0 alone; no evaluation text is repeated there either.
        ids = tokens["ids"][...]
        trained = {row.tobytes() for row in ids[split == 0]}
        assert not any(ids[i].tobytes() in trained for i in seen[1])


def test_every_checkpoint_of_a_model_reads_the_same_positions(smoke):
    for model in MODELS:
        read = []
        for checkpoint in CHECKPOINTS:
            group = zarr.open_group(smoke.at(f"cache/{model}/{checkpoint}/store.zarr"), mode="r")["b1"]
            read.append(np.stack([group[k][...] for k in ("sequence", "position", "token_id", "target_id")]))
        assert (read[0] == read[1]).all()
        assert (read[0] == read[2]).all()


def test_the_encoders_last_block_has_gradients_in_every_bucket(smoke):
    energy = smoke.table("energy")
    last = energy[(energy["model"] == "encoder") & (energy["site"] == "block.1") & (energy["quantity"] == "gradient")]
    assert (last.groupby(["checkpoint", "bucket"])["n_tokens"].min() > 0).all()
    assert set(last["bucket"]) == set(BUCKETS)
    store = zarr.open_group(smoke.at("cache/encoder/step3/store.zarr"), mode="r")
    for bucket in BUCKETS:
        group = store[bucket]
        nonzero = np.any(group["gradients"][SITES.index("block.1")] != 0, axis=1)
        masked = group["masked"][...]
        assert nonzero.any()
        assert (nonzero == masked).all()
        # The id of a masked position is the text's, never the mask's: it has a frequency, so a bucket.
        assert (group["target_id"][...][masked] == group["token_id"][...][masked]).all()


def test_a_decoders_position_without_a_target_is_not_read(smoke):
    store = zarr.open_group(smoke.at("cache/decoder/step3/store.zarr"), mode="r")
    for bucket in BUCKETS:
        assert store[bucket]["position"][...].max() < 63
        assert store[bucket]["position"][...].min() > 0
        assert (store[bucket]["target_id"][...] >= 0).all()
        assert np.isfinite(store[bucket]["loss"][...]).all()
        assert np.any(store[bucket]["gradients"][...] != 0, axis=2).all()


def test_the_report_is_one_page_without_network(smoke):
    page = smoke.at("report.html").read_text()
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert page.count("</script>") == 3
    assert text.count("<img") == len(FIGURES)
    assert re.findall(r"(?:src|href)='(?!data:|#)", text) == []
    assert "study: smoke" in text
    assert smoke.at("report.html").stat().st_size < 6e6


def test_what_the_jobs_took_is_counted_by_rule(smoke):
    took = pd.read_csv(smoke.at("runtime.csv")).set_index("rule")
    assert (took.loc["capture", "jobs"], took.loc["figures", "jobs"]) == (6, len(FIGURES))
    assert (took["total [s]"] >= took["longest [s]"]).all()
    assert (took.loc["capture"] > 0).all()
    assert "<td>capture</td><td class=number>6</td>" in smoke.at("report.html").read_text()


def test_the_cards_are_of_this_study_and_the_check_agrees_with_them(smoke):
    command = [sys.executable, "-m", "isotrace", "check", "--configfile", str(smoke.config)]
    done = subprocess.run(command, cwd=smoke.folder, env=smoke.environment(), capture_output=True, text=True)
    verdicts = dict(re.findall(r"^(\w+): (ok|watch|alarm|unknown) ", done.stdout, flags=re.MULTILINE))
    assert set(verdicts) == set(MODELS)
    assert done.returncode == int("alarm" in verdicts.values())
    for model, verdict in verdicts.items():
        text = smoke.at(f"card/{model}.html").read_text()
        assert f"<p class='verdict {verdict}'>" in text
        assert text.count("<svg") == 7  # max_over_median_norm is none of the smoke study's metrics
