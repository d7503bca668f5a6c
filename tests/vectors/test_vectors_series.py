"""Dumps as a series: found by number, refused by key, planned, and with buckets of their own."""

from pathlib import Path

import pytest

from configs import smoke
from dumped import arrays, bare, config, model, write
from isotrace.errors import ConfigError
from isotrace.params import Params
from isotrace.plan import plan
from isotrace.planning.calibration import Calibration
from isotrace.planning.jobs import jobs
from isotrace.sources.vectors import dump_files
from isotrace.study import load, validated

STEPS = (0, 9, 10, 100)


@pytest.fixture
def pattern(tmp_path):
    for step in STEPS:
        write(tmp_path / f"step_{step}.npz", {"acts": arrays()["acts"][:, :2]})
    return f"{tmp_path}/step_{{step}}.npz"


def test_dumps_are_found_by_number_with_their_tokens(pattern):
    entry = model(pattern) | {"tokens_per_step": 5, "total_steps": 400}
    series = load(config({"m": entry})).series["m"]
    assert [(f.id, f.step, f.tokens) for f in series.found] == [(f"step{s}", s, 5 * s) for s in STEPS]
    assert (series.provider, series.total_steps, series.tokenizer, series.shape) == ("vectors", 400, "", "")


def test_what_lies_beside_is_left_out_and_named(tmp_path, pattern):
    (tmp_path / "step_3.npz.part").write_text("")
    (tmp_path / "step_5.npz").mkdir()
    series = load(config({"m": model(pattern)})).series["m"]
    assert {one["name"]: one["reason"].split(":")[0] for one in series.left_out} == {
        "step_3.npz.part": "half-written or foreign",
        "step_5.npz": "a folder and not a file",
    }
    with pytest.raises(ConfigError, match=r"models\.m\.source\.on_broken: error, and beside the dumps lie"):
        load(config({"m": model(pattern, on_broken="error")}))


REFUSED = [
    ({"arrays": {"activations": "acts"}}, r"^models\.m\.source: .*arrays\.sequence: name the array.*share no sequence"),
    ({"rows_independent": True}, r"rows_independent: true, but arrays\.sequence"),
    ({"sites": ["a", "a"]}, "sites: each once"),
    ({"sites": ["a:b"]}, r"models\.m\.source\.sites"),
    ({"arrays": {"activations": "acts", "sequence": "s"}, "counts": "c.npy"}, r"arrays\.token_id names none"),
    ({"counts": "none.npy"}, r"models\.m\.source\.counts: no \.npy file none\.npy"),
    ({"tokenizer": "none"}, r"models\.m\.source\.tokenizer: none holds no tokenizer"),
    ({"path": "none/step_{step}.npz"}, r"models\.m\.source\.path: no file matches"),
    ({"path": "none/step_{step}"}, r"models\.m\.source\.path: no folder matches"),
    ({"path": "none/step"}, r"models\.m\.source\.path"),
    ({"array": {}}, r"models\.m\.source\.array: unknown key"),
]


@pytest.mark.parametrize(("edits", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_mistake_is_one_line_with_its_key(pattern, edits, said):
    with pytest.raises(ConfigError, match=said) as error:
        load(config({"m": model(pattern, **edits)}))
    assert "\n" not in str(error.value)


def test_keys_of_what_is_loaded_or_read_are_refused(pattern):
    for name, value in {"corpus": "wiki", "modules": {"embed": "a", "blocks": "b"}}.items():
        with pytest.raises(ConfigError, match=rf"models\.m\.{name}: of dumped vectors nothing is loaded"):
            load(config({"m": model(pattern) | {name: value}}))
    with pytest.raises(ConfigError, match=r"models\.decoder\.objective: none is for dumped vectors"):
        load(smoke({"models.decoder.objective": "none"}))
    with pytest.raises(ConfigError, match=r"corpora: name a corpus, which models\.decoder reads"):
        load(smoke({"corpora": {}}))
    without = {k: v for k, v in model(pattern)["source"]["arrays"].items() if k != "target_id"}
    by_target = config({"m": model(pattern, arrays=without)}) | {"buckets": {"number": 2, "by": "target"}}
    with pytest.raises(ConfigError, match=r"models\.m\.source\.arrays\.target_id: name the array"):
        load(by_target)


def test_buckets_are_a_models_own(pattern):
    study = validated(config({"full": model(pattern), "bare": bare(pattern)}))
    assert study.buckets_of("full") == ["b0", "b1"]
    assert study.buckets_of("bare") == ["all"]
    assert (study.dumped, study.loaded) == (["full", "bare"], [])
    params = Params(study)
    assert params.frequency("bare")["buckets"] == params.bases("bare", "pca")["buckets"] == ["all"]
    assert params.vectors("bare", "step9")["buckets"] == {}


def test_the_plan_counts_an_audit_and_an_import_and_no_text(pattern):
    raw = smoke()
    raw["models"] |= {"full": model(pattern), "bare": bare(pattern)}
    study = load(raw)
    of = {name: {one.rule: one.n for one in jobs(study) if one.model == name} for name in study.models}
    assert of["full"]["vectors"] == of["full"]["audit"] == of["bare"]["energy"] == len(STEPS)
    assert not {"tokens", "sample", "capture", "tokenizer"} & {*of["full"], *of["bare"]}
    assert of["decoder"] == {one.rule: one.n for one in jobs(load(smoke())) if one.model == "decoder"}
    speed = Calibration(gflops=100, start=0.5, write=1000, threads=1)
    found = plan(load(config({"m": bare(pattern)})), speed, cores=2, results=Path(pattern).parent)
    assert found["models"]["m"]["tokens"] == 0
    assert "corpus" not in found["jobs"]
    assert any("dumps are not opened for a plan" in note for note in found["notes"])


def test_an_audit_waits_for_the_files_that_it_reads(tmp_path):
    names = {"activations": "acts", "gradients": "grads", "token_id": None}
    folder = write(tmp_path / "step_1", {"acts": arrays()["acts"], "unread": arrays()["acts"]})
    assert dump_files(str(folder), names) == [f"{folder}/acts.npy"]
    assert dump_files(str(tmp_path / "step_2"), names) == [str(tmp_path / "step_2")]
    assert dump_files("d/step_1.zarr", names) == ["d/step_1.zarr"]


def test_every_script_of_dumped_vectors_is_digested(pattern):
    params = Params(load(config({"m": model(pattern)})))
    specs = [params.audit_vectors("m", "step9"), params.vectors("m", "step9"), params.frequency("m")]
    assert len({spec["code"] for spec in specs}) == 3
