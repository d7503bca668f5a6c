"""Seeds as runs: each a model of its own, and together one group."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs import smoke
from isotrace.errors import ConfigError
from isotrace.params import Params
from isotrace.planning.jobs import jobs
from isotrace.study import load, validated

SEEDS = st.lists(st.integers(0, 999), min_size=1, max_size=6, unique=True).map(sorted)
LOCAL = {"kind": "local", "path": "runs/seed{seed}/checkpoint-{step}"}


def seeded(edits=None, seeds=(0, 1)):
    return smoke({"models.decoder.seeds": list(seeds)} | (edits or {}))


def test_each_seed_is_a_model_and_the_group_is_none():
    study = load(seeded(seeds=[3, 11]))
    assert list(study.models) == ["decoder-seed3", "decoder-seed11", "encoder"]
    assert study.groups == {"decoder-seed3": "decoder", "decoder-seed11": "decoder"}
    assert [study.seed_of(name) for name in study.models] == [3, 11, 0]
    assert Params(study).tables("energy")["seeds"] == {"decoder-seed3": 3, "decoder-seed11": 11, "encoder": 0}
    assert Params(study).dynamics("dynamics")["runs"] == study.groups


@settings(max_examples=20)
@given(SEEDS)
def test_a_run_differs_from_the_same_model_written_out_in_nothing(seeds):
    """A run's training reads what it would if it stood in the config by itself."""
    study = load(seeded(seeds=seeds))
    for seed in seeds:
        alone = load(smoke({"models.decoder.seed": seed}))
        assert Params(study).train(f"decoder-seed{seed}") == Params(alone).train("decoder")
        assert study.models[f"decoder-seed{seed}"] == alone.models["decoder"]


def test_runs_share_text_and_tokenizer_and_differ_in_their_seed_alone():
    study = load(seeded(seeds=[0, 1]))
    first, second = "decoder-seed0", "decoder-seed1"
    params = Params(study)
    assert study.series[first].tokenizer == study.series[second].tokenizer
    assert "/weights/decoder/" in study.series[first].tokenizer
    assert (params.tokens(first), params.sample(first)) == (params.tokens(second), params.sample(second))
    one, other = params.train(first), params.train(second)
    assert {key for key in one if one[key] != other[key]} == {"seed"}
    assert [one.n for one in jobs(study) if one.rule == "tokenizer"] == [1, 1]  # the group's and the encoder's


def test_adding_a_seed_leaves_the_params_of_the_others_alone():
    before, after = (Params(load(seeded(seeds=seeds))) for seeds in ([1], [0, 1]))
    name = "decoder-seed1"
    for rule in ("tokens", "sample", "train"):
        assert getattr(before, rule)(name) == getattr(after, rule)(name)
    assert before.study.series[name] == after.study.series[name]


def stored(folder, seed):
    for step in (1, 2, 10):
        here = folder / f"runs/seed{seed}/checkpoint-{step}"
        here.mkdir(parents=True)
        (here / "config.json").write_text('{"model_type": "gpt2", "n_embd": 64}')
        (here / "tokenizer.json").write_text("{}")
        (here / "model.safetensors").write_bytes(b"")


def test_stored_runs_lie_where_seed_stands_in_their_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (4, 5):
        stored(tmp_path, seed)
    source = LOCAL | {"tokenizer": "runs/seed{seed}/checkpoint-1"}
    study = load(seeded({"models.decoder.source": source}, seeds=[4, 5]))
    for seed in (4, 5):
        series = study.series[f"decoder-seed{seed}"]
        assert series.ids == ["step1", "step2", "step10"]
        assert all(found.path.startswith(f"runs/seed{seed}/") for found in series.found)
        assert series.tokenizer == f"runs/seed{seed}/checkpoint-1/tokenizer.json"
    with pytest.raises(ConfigError, match=r"models\.decoder-seed6\.source\.path: no folder matches 'runs/seed6/"):
        load(seeded({"models.decoder.source": source}, seeds=[4, 6]))


def test_repos_of_seeds_have_a_series_file_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = {"kind": "hub", "repo": "maker/model-seed{seed}", "tokenizer": {"repo": "maker/words-{seed}"}}
    raw = seeded({"models.decoder.source": source}, seeds=[1, 2])
    found = validated(raw).models["decoder-seed2"].source
    assert (found.repo, found.tokenizer.repo) == ("maker/model-seed2", "maker/words-2")
    for seed in (1, 2):
        entries = [{"label": f"step{n}", "step": n, "repo": f"maker/model-seed{seed}", "revision": "x"} for n in (0, 9)]
        entries.insert(1, entries[0] | {"label": "step1", "step": 1})
        content = {"model": f"decoder-seed{seed}", "repo": f"maker/model-seed{seed}", "total_steps": 9}
        content |= {"checkpoints": entries, "tokenizer": {"repo": "maker/words", "revision": "main"}}
        file = tmp_path / f"config/series/decoder-seed{seed}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    assert {len(load(raw).series[f"decoder-seed{seed}"].found) for seed in (1, 2)} == {3}
    (tmp_path / "config/series/decoder-seed2.json").unlink()
    with pytest.raises(ConfigError, match="isotrace resolve decoder-seed2 --configfile"):
        load(raw)


TRAINED = smoke()["models"]["decoder"]
MISTAKES = [
    ({"models.decoder.seeds": []}, ["models.decoder.seeds: ", "at least 1"]),
    ({"models.decoder.seeds": [1, 1]}, ["models.decoder: ", "[1, 1]", "without repeats"]),
    ({"models.decoder.seeds": [2, 1]}, ["models.decoder: ", "[2, 1]", "rise"]),
    ({"models.decoder.seeds": [-1, 1]}, ["models.decoder: ", "[-1, 1]", "from 0"]),
    ({"models.decoder.seed": 3}, ["models.decoder: ", "seed 3", "seeds [0, 1]", "one of the two"]),
    ({"models.decoder-seed1": TRAINED}, ["models.decoder-seed1: ", "two models"]),
    ({"models.clm": TRAINED | {"seeds": [0]}}, ["models.clm.seeds: ", "'clm'", "another name"]),
    ({"models.all": TRAINED | {"seeds": [0]}}, ["models.all.seeds: ", "'all'", "another name"]),
    (
        {"models.decoder-seed1": TRAINED | {"seeds": [0]}},
        ["models.decoder-seed1.seeds: ", "a run of another model", "rename"],
    ),
    (
        {"models.decoder.source": LOCAL | {"path": "runs/checkpoint-{step}"}},
        ["models.decoder.source.path: ", "'runs/checkpoint-{step}'", "[0, 1]", "{seed}"],
    ),
    (
        {"models.decoder.source": {"kind": "hub", "repo": "maker/model"}},
        ["models.decoder.source.repo: ", "'maker/model'", "{seed}"],
    ),
    (
        {"models.decoder.source": {"kind": "init", "architecture": TRAINED["source"]["architecture"]}},
        ["models.decoder.seeds: ", "models.decoder.source.seeds"],
    ),
    (
        {"models.decoder.seeds": None, "models.decoder.source": LOCAL},
        ["models.decoder.seeds: ", "missing", "{seed}", "[0, 1]"],
    ),
]


@pytest.mark.parametrize(("edits", "said"), MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_a_mistake_is_one_line_that_names_the_key(edits, said):
    with pytest.raises(ConfigError) as caught:
        load(seeded(edits))
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(said[0])
    assert [part for part in said if part not in line] == []
