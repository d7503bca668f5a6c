"""Images from files, recordings from files, bytes of a text: every table and figure, through Snakemake."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from running import Study
from scipy.io import wavfile

from configs import ROOT
from hub_server import Hub, serving
from isotrace.checkpoints.initialise import initialise
from isotrace.yamlfile import read_mapping

BYTES = {
    "model_type": "t5",
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 2,
}


CANINE = {
    "model_type": "canine",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_hash_buckets": 64,
    "local_transformer_stride": 32,
}


def files(folder: Path) -> None:
    """Six noisy pictures that brighten from left to right, six recordings of a chirp, and a text."""
    rng = np.random.default_rng(0)
    for i in range(6):
        light = np.linspace(0, 200, 96)[None, :, None] + rng.uniform(0, 55, (96, 96, 3)) * (i + 1) / 6
        Image.fromarray(light.astype(np.uint8)).save(folder / f"{i}.png")
        t = np.arange(2 * 16000) / 16000
        chirp = 0.4 * np.sin(2 * np.pi * (200 + 50 * i + 100 * t) * t) * np.linspace(0, 1, len(t))
        wavfile.write(
            folder / f"{i}.wav", 16000, (2**15 * (chirp + 0.01 * rng.standard_normal(len(t)))).astype(np.int16)
        )
    words = ["frame", "byte", "colour", "naïve", "sound", "patch", "of", "the", "a"]
    text = "\n".join(" ".join(rng.choice(words, 400)) for _ in range(12))
    for i, document in enumerate(text.splitlines()):
        (folder / f"{i}.txt").write_text(document, encoding="utf-8")


@pytest.fixture
def study(fresh: Study) -> Study:
    """The shipped study cut to two models and two seeds, on files; and a byte encoder in a study of text buckets."""
    files(fresh.folder)
    raw = read_mapping(ROOT / "config" / "modalities.yaml")
    raw["corpora"] = {
        "photographs": {"source": "images", "paths": ["[0-9].png"], "tiles": 3},
        "sounds": {"source": "audio", "paths": ["[0-9].wav"], "seconds": 0.5},
    }
    raw["models"] = {name: raw["models"][name] for name in ("dinov2", "wav2vec2")}
    for model in raw["models"].values():
        model["source"]["seeds"] = [0, 1]
    raw.pop("pathvars")
    return fresh.written(raw)


@pytest.mark.slow
def test_images_and_sounds_fill_every_table_and_figure(study: Study) -> None:
    rules = study.planned()
    assert (rules["perceive"], rules["frequency_vectors"], rules["initialise"]) == (4, 4, 4)
    assert not {"corpus", "tokens", "tokenizer", "sample", "capture", "frequency"} & set(rules)
    study.done()
    geometry, isotropy, energy = (study.table(name) for name in ("geometry", "isotropy", "energy"))
    cosine = geometry[geometry["metric"] == "mean_cosine"].dropna(subset="value")
    assert set(cosine.groupby(["model", "bucket"])["checkpoint"].nunique()) == {2}
    assert set(cosine["quantity"]) == {"activation", "gradient"}
    found = energy[(energy["quantity"] == "gradient") & energy["ratio"].notna()]
    assert set(found["model"]) == {"dinov2", "wav2vec2"}
    assert isotropy["score"].notna().any()
    attention = study.table("attention").query("query_bucket == 'b1' and key_bucket == 'all'")
    assert set(attention["model"]) == {"dinov2", "wav2vec2"}
    assert attention[["drift_q", "entropy"]].notna().all(axis=None)
    loss = geometry[geometry["metric"] == "loss"]
    assert loss.groupby("model")["reason"].unique().explode().to_dict() == {
        "dinov2": "there is no held-out loss: the head is asked for its own answer",
        "wav2vec2": "the loss of what is hidden is not kept by row",
    }
    assert set(study.table("frequency")["reason"]) >= {"patches and frames have no token ids"}
    drawn = study.at("figures/cosine_by_depth.csv").read_text()
    assert "dinov2" in drawn
    assert "wav2vec2" in drawn
    assert study.at("report.html").stat().st_size > 10_000
    assert study.planned() == {}
    files_changed = study.folder / "0.wav"
    wavfile.write(files_changed, 16000, np.zeros(16000, np.int16))
    assert study.planned("results/cache/wav2vec2/step0-seed0.json")["perceive"] == 1


@pytest.mark.slow
def test_images_are_read_by_checkpoints_of_a_hub(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two untrained models as revisions of a repo: rows are those of the same folders on this machine."""
    folders = {f"step{i}": study.folder / "runs" / f"checkpoint-{i}" for i in (0, 1)}
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    vit = {"model_type": "vit", "image_size": 16, "patch_size": 4, **size}
    for seed, folder in enumerate(folders.values()):
        initialise({"seed": seed, "objective": "image", "architecture": vit}, None, None, folder)
    known = {"modality": "image", "objective": "none", "corpus": "photographs", "total_steps": 10}
    sources = {
        "near": {"kind": "local", "path": "runs/checkpoint-{step}"},
        "far": {"kind": "hub", "repo": "org/tiny", "clean": "after_capture"},
    }
    both = study.changed({"models": {name: known | {"source": source} for name, source in sources.items()}})
    targets = [f"results/cache/{name}/step{i}.json" for name in sources for i in (0, 1)]
    with serving(Hub({"org/tiny": folders})) as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        command = [sys.executable, "-m", "isotrace", "resolve", "far", "--configfile", str(both.config)]
        subprocess.run(command, cwd=both.folder, env=both.environment(), check=True, capture_output=True)
        both.done(*targets)
    for step in ("step0", "step1"):
        near, far = (json.loads(both.at(f"cache/{name}/{step}.json").read_text())["files"] for name in sources)
        assert {k: v for k, v in near.items() if "/c/" in k} == {k: v for k, v in far.items() if "/c/" in k}
    assert not both.at("weights/far/step0").exists()
    assert both.at("weights/far/tokenizer/preprocessor_config.json").is_file()


@pytest.mark.slow
def test_text_is_read_by_bytes_and_by_characters(study: Study) -> None:
    source = {"kind": "init", "architecture": BYTES, "seeds": [0, 1]}
    edits: dict[str, Any] = {
        "corpora": {"text": {"source": "files", "paths": ["[0-9]*.txt"], "min_characters": 20}},
        "models": {
            "byt5": {"modality": "bytes", "objective": "mlm", "source": source},
            "canine": {"modality": "bytes", "objective": "none", "source": source | {"architecture": CANINE}},
        },
        "buckets": {"number": 2},
        "tokens": {"sequence_length": 64, "eval_fraction": 0.5},
    }
    bytes_of = study.changed(edits)
    targets = (
        "results/tables/geometry.parquet",
        "results/tables/attention.parquet",
        "results/tables/frequency.parquet",
    )
    planned = bytes_of.planned(*targets)
    assert (planned["byte_tokenizer"], planned["tokens"], planned["capture"], planned["perceive"]) == (1, 1, 2, 2)
    bytes_of.done(*targets)
    geometry = bytes_of.table("geometry")
    values = geometry[geometry["metric"].isin(["mean_cosine", "loss"])].dropna(subset="value")
    assert set(values["bucket"]) == {"b0", "b1"}
    assert set(values["model"]) == {"byt5", "canine"}
    assert set(values.loc[values["model"] == "byt5", "quantity"]) >= {"activation", "gradient"}
    loss = values[values["metric"] == "loss"]
    assert set(loss["model"]) == {"byt5"}
    assert loss["value"].between(0.5 * np.log(384), 3 * np.log(384)).all()
    without = geometry[(geometry["model"] == "canine") & (geometry["quantity"] == "gradient")]
    assert set(without["reason"]) == {"the model has no head to differentiate"}
    for table, value in (("attention", "entropy"), ("frequency", "spearman")):
        found = bytes_of.table(table).dropna(subset=value)
        assert set(found["model"]) == {"byt5", "canine"}


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"models.dinov2.objective": "clm"}, "models.dinov2.objective: clm is a loss of text; of image write none"),
        ({"models.dinov2.corpus": "sounds"}, "models.dinov2.corpus: sounds holds audio, but the modality is image"),
        (
            {"models.dinov2.modality": "text"},
            "models.dinov2.objective: none is for dumped vectors, images, audio and bytes",
        ),
        ({"corpora.sounds.paths": ["none-*.wav"]}, "corpora.sounds.paths: none-*.wav: the pattern matches no file"),
        ({"buckets.edges": [0.5]}, "edges: kind energy takes quantiles; give their number instead"),
    ],
)
def test_a_mistake_is_one_line(edits: dict[str, Any], said: str, study: Study, refused: Any) -> None:
    assert said in refused(study.changed(edits).snakemake("--dry-run"))
