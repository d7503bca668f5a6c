"""What is planned of a series follows its source: folders on disk, the hub, models drawn at random."""

import json

from configs import smoke
from isotrace.planning.lines import text
from planned_smoke import hub_series, planned


def local(folder):
    """The smoke study with its decoder read from ``folder``."""
    source = {"kind": "local", "path": f"{folder}/checkpoint-{{step}}", "tokenizer": str(folder)}
    return {"models": {"mine": {"objective": "clm", "total_steps": 10, "source": source}}}


def test_a_series_on_disk_is_planned_from_its_config(tmp_path):
    architecture = smoke()["models"]["decoder"]["source"]["architecture"] | {"vocab_size": 512}
    for step in (0, 1, 10):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(architecture))
        (folder / "model.safetensors").write_bytes(b"truncated")
    (tmp_path / "tokenizer.json").write_text("{}")
    found = planned(local(tmp_path))
    trained = planned()["models"]["decoder"]
    mine = found["models"]["mine"]
    assert {name: mine[name] for name in ("parameters", "width", "tokens", "cache_gb")} == {
        name: trained[name] for name in ("parameters", "width", "tokens", "cache_gb")
    }
    assert (mine["weights_gb"], found["jobs"].get("train")) == (0, None)


def test_a_family_without_a_known_size_is_said_to_be_left_out(tmp_path):
    for step in (0, 1, 10):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "config.json").write_text('{"model_type": "novel"}')
        (folder / "model.safetensors").write_bytes(b"truncated")
    (tmp_path / "tokenizer.json").write_text("{}")
    found = planned(local(tmp_path))
    assert found["models"]["mine"]["parameters"] is None
    assert found["notes"][0].startswith("mine: ")
    assert " ? " in text(found)


def test_a_series_on_the_hub_is_planned_from_its_series_file(tmp_path):
    source = hub_series(tmp_path, 10**9)
    found = planned({"models": {"mine": {"objective": "clm", "source": source}}})
    assert found["models"]["mine"]["weights_gb"] == 3
    assert found["models"]["mine"]["parameters"] == planned()["models"]["decoder"]["parameters"]
    assert found["jobs"]["prefetch"]["n"] == 4
    cleaned = planned({"models": {"mine": {"objective": "clm", "source": source | {"clean": "after_capture"}}}})
    assert cleaned["models"]["mine"]["weights_gb"] == 2
    kept = planned(
        {
            "models": {"mine": {"objective": "clm", "source": source | {"clean": "after_capture"}}},
            "storage.weights": str(tmp_path),
        }
    )
    assert kept["models"]["mine"]["weights_gb"] == 3


def test_untrained_models_are_jobs_and_weights_of_their_own(tmp_path):
    architecture = smoke()["models"]["decoder"]["source"]["architecture"]
    source = {"kind": "init", "architecture": architecture, "seeds": [0, 1, 2], "vocabulary": 512}
    found = planned({"models": {"mine": {"objective": "clm", "source": source}}})
    trained = planned()["models"]["decoder"]
    assert found["jobs"]["initialise"]["n"] == 3
    assert found["models"]["mine"]["parameters"] == trained["parameters"]
    assert found["models"]["mine"]["weights_gb"] == trained["weights_gb"]
