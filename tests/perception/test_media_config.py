"""What a config of images, sound and bytes finds: buckets, tasks, params of plain values, and refusals by name."""

from typing import Any

import pytest

from configs import ROOT
from isotrace.errors import ConfigError
from isotrace.params import Params
from isotrace.planning.jobs import jobs
from isotrace.study import Study, load
from isotrace.yamlfile import read_mapping


def config(**edits: Any) -> dict[str, Any]:
    """The shipped study with blocks replaced."""
    return read_mapping(ROOT / "config" / "modalities.yaml") | edits


def of_bytes(tmp_path: Any, **changes: Any) -> Study:
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    canine = {"model_type": "canine", "hidden_size": 16, "max_position_embeddings": 128}
    model = {"modality": "bytes", "objective": "none", "source": {"kind": "init", "architecture": canine}}
    corpora = {"text": {"source": "files", "paths": [f"{tmp_path}/a.txt"]}}
    return load(config(corpora=corpora, models={"m": model | changes}, buckets={"number": 3}))


def test_buckets_are_of_energy_where_that_is_asked_and_one_otherwise() -> None:
    assert load(config()).buckets_of("vit") == ["b0", "b1"]
    by_mass = load(config(buckets={"kind": "mass", "number": 2}))
    assert by_mass.buckets_of("vit") == by_mass.buckets_of("whisper") == ["all"]


def test_bytes_without_a_loss_are_characters(tmp_path: Any) -> None:
    study = of_bytes(tmp_path)
    assert (study.models["m"].task, study.perceived, study.buckets_of("m")) == ("characters", ["m"], ["b0", "b1", "b2"])
    counted = {one.rule: one.n for one in jobs(study)}
    assert (counted["corpus"], counted["perceive"]) == (1, 2)
    assert not {"tokens", "sample", "capture", "tokenizer"} & set(counted)
    with_loss = of_bytes(tmp_path, objective="mlm")
    assert (with_loss.perceived, with_loss.reading) == ([], ["m"])
    assert {"byte_tokenizer", "capture"} <= {one.rule for one in jobs(with_loss)}


def test_no_text_is_read_for_images_and_sound() -> None:
    study = load(config())
    assert "corpus" not in {one.rule for one in jobs(study)}
    spec = Params(study).perceive("wav2vec2", "step0-seed1")
    assert (spec["task"], spec["corpus"]["source"], spec["names"]) == ("audio", "tones", ["b0", "b1"])


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        ("vit", {"objective": "mlm"}, "models.vit.objective: mlm is a loss of text; of image write none"),
        ("vit", {"corpus": "sounds"}, "models.vit.corpus: sounds holds audio, but the modality is image"),
        ("vit", {"modality": "text", "objective": "clm"}, "photographs holds image, but the modality is text"),
        (
            "vit",
            {"modules": {"embed": "a", "blocks": "b"}},
            "models.vit.modules: the sites of image models are found, not declared",
        ),
        (
            "whisper",
            {"source": {"kind": "train", "architecture": {"model_type": "whisper"}, "steps": [0, 1, 10]}},
            "models.whisper.source.kind: train is for text; checkpoints of audio are local, hub or init",
        ),
        (
            "vit",
            {"source": {"kind": "hub", "repo": "org/tiny", "remote_code": "a" * 40}},
            "models.vit.source.remote_code: code of a model's own is run for text only; leave it out",
        ),
        (
            "vit",
            {"source": {"kind": "init", "folder": str(ROOT / "config")}},
            "models.vit.source.folder",
        ),
    ],
)
def test_what_means_nothing_is_refused_by_its_key(model: str, change: dict[str, Any], said: str) -> None:
    raw = config()
    raw["models"][model] = raw["models"][model] | change
    with pytest.raises(ConfigError) as caught:
        load(raw)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_energy_is_no_bucket_of_text(tmp_path: Any) -> None:
    raw = config()
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    raw["corpora"] = {"text": {"source": "files", "paths": [f"{tmp_path}/a.txt"]}}
    canine = {"model_type": "canine", "hidden_size": 16, "max_position_embeddings": 128}
    source = {"kind": "init", "architecture": canine}
    raw["models"] = {"m": {"modality": "bytes", "objective": "none", "source": source}}
    with pytest.raises(ConfigError, match=r"buckets.kind: energy is of images and audio, and models.m reads text"):
        load(raw)


def test_a_mixture_is_of_text_alone() -> None:
    raw = config()
    raw["corpora"] |= {"both": {"source": "mixture", "parts": {"photographs": 1, "sounds": 1}}}
    with pytest.raises(ConfigError, match=r"corpora.both.parts: 'photographs' is not among the corpora to mix"):
        load(raw)
