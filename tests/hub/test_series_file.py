"""The series file while parsing: what is missing, stale or broken is one line that names the command."""

import json

import pytest

from configs import ROOT, smoke
from isotrace.errors import ConfigError
from isotrace.params import Params
from isotrace.study import load


def listing(steps=(0, 8, 100), **changes):
    checkpoints = [{"label": f"step{s}", "step": s, "repo": "org/tiny", "revision": f"step{s}"} for s in steps]
    return {
        "model": "decoder",
        "repo": "org/tiny",
        "total_steps": 100,
        "tokens_per_step": 1000,
        "checkpoints": checkpoints,
        "tokenizer": {"repo": "org/tiny", "revision": "main"},
    } | changes


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Load the smoke study with its decoder on the hub, from a series file of this content."""
    monkeypatch.chdir(tmp_path)

    def loaded(content, edits=None, **source):
        if content is not None:
            (tmp_path / "series.json").write_text(content if isinstance(content, str) else json.dumps(content))
        given = {"kind": "hub", "repo": "org/tiny", "series": "series.json"} | source
        return load(smoke({"models.decoder.source": given} | (edits or {})))

    return loaded


def test_an_unresolved_series_parses(study):
    """Shipped studies list labels and steps; commits come from `isotrace resolve`."""
    series = study(listing()).series["decoder"]
    assert series.ids == ["step0", "step8", "step100"]
    assert [found.tokens for found in series.found] == [0, 8000, 100_000]
    assert series.downloads["step8"]["commit"] is None


@pytest.mark.parametrize(
    ("content", "source", "said"),
    [
        (None, {"series": "none.json"}, "models.decoder.source.series: no file none.json"),
        ("{", {}, "series.json: "),
        (listing(checkpoints=[{"label": "step0"}]), {}, "series.json: checkpoints.0.step"),
        (listing(), {"repo": "org/other"}, "models.decoder.source.repo: 'org/other', but series.json is of 'org/tiny'"),
        (listing(), {"revisions": {"labels": "trainer"}}, "models.decoder.source.revisions.labels: 'trainer', but"),
        (listing(checkpoints=[]), {}, "models.decoder.source.revisions.labels: "),
    ],
    ids=["missing", "no json", "no step", "another repo", "other labels", "empty"],
)
def test_what_cannot_be_used_is_one_line_with_the_command(study, content, source, said):
    with pytest.raises(ConfigError) as caught:
        study(content, **source)
    assert str(caught.value).startswith(said)
    assert "isotrace resolve decoder --configfile FILE" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("revisions", "said"),
    [
        (
            {"take": {"steps": [7]}},
            "models.decoder.source.revisions.take.steps: [7] are not among the steps [0, 8, ",
        ),
        ({"take": {"every": 2, "log": 2}}, "models.decoder.source.revisions.take: one of every, log and steps"),
        ({"take": {"every": 1}}, "models.decoder.source.revisions.take.every: "),
        ({"labels": "step"}, "label pattern 'step' names no group 'step'"),
    ],
    ids=["no such step", "two at once", "every one", "no group"],
)
def test_an_impossible_choice_is_one_line(study, revisions, said):
    with pytest.raises(ConfigError) as caught:
        study(listing(), revisions=revisions)
    assert str(caught.value).startswith(said)


def test_an_id_does_not_depend_on_what_is_taken(study):
    content = listing((0, 8))
    content["checkpoints"] += [
        {"label": f"step100-ingredient{i}", "step": 100, "repo": "org/tiny", "revision": f"i{i}"} for i in (2, 1)
    ]
    labels = r"step(?P<step>\d+)(-ingredient(?P<ingredient>\d))?"
    every = study(content, revisions={"labels": labels}).series["decoder"].ids
    assert every == ["step0", "step8", "step100-step100-ingredient1", "step100-step100-ingredient2"]
    content["checkpoints"].reverse()
    assert study(content, revisions={"labels": labels}).series["decoder"].ids == every


def test_the_shape_is_checked_before_any_download(study):
    with pytest.raises(ConfigError, match=r"tokens.sequence_length: 64 is above the context 32 of series.json"):
        study(listing(config={"max_position_embeddings": 32}))


def test_params_of_a_download_hold_its_pin_and_no_code(study):
    files = {"model.safetensors": {"bytes": 10, "sha256": "a" * 64}}
    content = listing()
    content["checkpoints"][1] |= {"commit": "c" * 40, "files": files}
    found = Params(study(content)).prefetch("decoder", "step8")
    assert set(found) == {"download", "model", "threads"}
    assert found["download"]["commit"] == "c" * 40
    assert found["download"]["files"] == files
    assert json.loads(json.dumps(found, sort_keys=True)) == found
    assert str(ROOT) not in repr(found)
