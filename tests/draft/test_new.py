"""`isotrace new`: what it finds out, what it asks, and that what it writes is a study that can be run."""

import json
import subprocess
import sys

import numpy as np
import pytest
import yaml

import dumped
from configs import ROOT, smoke
from isotrace.cli import main
from isotrace.commands.registry import parser
from isotrace.draft.ask import Asker
from isotrace.draft.make import draft, kind_of
from isotrace.errors import ConfigError
from isotrace.study import read

ARCHITECTURE = smoke()["models"]["decoder"]["source"]["architecture"] | {"vocab_size": 512}


def series(folder, steps=(0, 10, 100), *, named="GPTNeoXForCausalLM", tokenizer=True, state=None, **config):
    """Checkpoints as a Trainer leaves them; nothing in their weights is read for a config."""
    for step in steps:
        made = folder / f"checkpoint-{step}"
        made.mkdir(parents=True)
        content = ARCHITECTURE | {"architectures": [named] if named else []} | config
        (made / "config.json").write_text(json.dumps(content))
        (made / "model.safetensors").write_bytes(b"truncated")
        if tokenizer:
            (made / "tokenizer.json").write_text("{}")
        if state:
            (made / "trainer_state.json").write_text(json.dumps(state))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with a text in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("words and words " * 40)
    return tmp_path


def made(*arguments, answers=None):
    """The draft of a command line; ``answers`` are what a user types, None where nobody is there."""
    options = parser(["new"]).parse_args(["new", *arguments])
    given = iter(answers or [])

    def typed(_prompt):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    found = draft(options, Asker(None if answers is None else typed))
    assert not list(given)
    return found


def test_a_trainers_folder_becomes_a_config_whose_run_is_planned(here):
    series(here / "runs" / "mine", state={"max_steps": 200, "global_step": 100})
    assert main(["new", "runs/mine", "--text", "texts/*.txt", "--language", "en"]) == 0
    study = read("mine.yaml")
    model = study.models["mine"]
    assert (model.objective, model.total_steps, model.source.path) == ("clm", 200, "runs/mine/checkpoint-{step}")
    assert study.series["mine"].ids == ["step0", "step10", "step100"]
    assert study.tokens.sequence_length == 64
    text = (here / "mine.yaml").read_text()
    assert "# GPTNeoXForCausalLM in config.json" in text
    assert "# 3 checkpoints, step 0 to 100" in text
    assert "# max_steps in trainer_state.json" in text
    command = [sys.executable, "-m", "isotrace", "run", "--configfile", "mine.yaml", "--cores", "1", "-n"]
    shipped = ["--snakefile", str(ROOT / "Snakefile")]
    done = subprocess.run([*command, *shipped], cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "capture" in done.stdout + done.stderr
    assert not (here / "results").exists()


def test_the_next_commands_are_told_and_a_file_is_not_written_over(here, capsys):
    series(here / "runs" / "mine")
    assert main(["new", "runs/mine", "--text", "texts/*.txt"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "local: runs/mine/checkpoint-{step}: 3 checkpoints, step 0 to 100"
    assert told[-2:] == ["  isotrace plan --configfile mine.yaml", "  isotrace run --configfile mine.yaml"]
    before = (here / "mine.yaml").read_bytes()
    assert main(["new", "runs/mine", "--name", "mine", "--objective", "mlm"]) == 1
    assert capsys.readouterr().err == ("isotrace: error: new: mine.yaml exists; name another with --out, or --force\n")
    assert (here / "mine.yaml").read_bytes() == before
    assert main(["new", "runs/mine", "--text", "texts/*.txt", "--out", "below/other.yaml", "--objective", "mlm"]) == 0
    assert read("below/other.yaml").models["mine"].objective == "mlm"


def test_only_what_nothing_tells_is_asked(here):
    series(here / "runs" / "mine", named="")
    found = made("runs/mine", answers=["", "1000", "maybe", "mlm", "texts/one.txt"])
    raw = yaml.safe_load(found.text)
    assert raw["models"]["mine"]["objective"] == "mlm"
    assert raw["models"]["mine"]["total_steps"] == 1000
    assert raw["corpora"]["text"]["paths"] == ["texts/one.txt"]
    flags = ["--name", "x", "--total-steps", "1000", "--objective", "clm", "--text", "texts/one.txt"]
    assert made("runs/mine", *flags, answers=[]).file.name == "x.yaml"
    with pytest.raises(ConfigError, match="no answer to 'Name of the model and the study'; give --name"):
        made("runs/mine", answers=[])


def test_without_anybody_to_ask_what_is_needed_is_named(here):
    series(here / "runs" / "mine", named="")
    with pytest.raises(ConfigError, match="new: give --objective"):
        made("runs/mine", "--text", "texts/one.txt")
    with pytest.raises(ConfigError, match="new: give a folder or ORG/NAME"):
        made()


def test_a_series_without_step_0_gets_an_untrained_one_and_two_early_checkpoints(here):
    series(here / "runs" / "late", steps=(60, 100))
    raw = yaml.safe_load(made("runs/late", "--text", "texts/one.txt").text)
    assert raw["models"]["late"]["source"]["with_init"] is True
    assert raw["bases"]["early_fraction"] == 0.6


def test_a_narrow_model_gets_ranks_that_it_has(here):
    series(here / "runs" / "thin", hidden_size=8)
    raw = yaml.safe_load(made("runs/thin", "--text", "texts/one.txt").text)
    assert raw["bases"]["ranks"] == raw["isotropy"]["ranks"] == [raw["dynamics"]["rank"]] == [4]


def test_a_tokenizer_around_the_checkpoints_is_found_and_none_at_all_is_refused(here):
    series(here / "runs" / "mine", tokenizer=False)
    with pytest.raises(ConfigError, match=r"models.mine.source.tokenizer: runs/mine/checkpoint-0 holds no tokenizer"):
        made("runs/mine", "--text", "texts/one.txt")
    (here / "runs" / "mine" / "tokenizer.json").write_text("{}")
    raw = yaml.safe_load(made("runs/mine", "--text", "texts/one.txt").text)
    assert raw["models"]["mine"]["source"]["tokenizer"] == "runs/mine"


@pytest.mark.parametrize("ending", dumped.FORMATS)
def test_dumps_are_recognised_by_the_names_of_their_arrays(here, ending):
    content = dumped.arrays() | {"tokens": dumped.arrays()["ids"]}
    for step in (0, 10, 100):
        dumped.write(here / "dumps" / f"step_{step}{ending}", {k: v for k, v in content.items() if k != "ids"})
    raw = yaml.safe_load(made("dumps").text)
    model = raw["models"]["dumps"]
    assert model["source"]["path"] == f"dumps/step_{{step}}{ending}"
    assert model["source"]["arrays"] == {
        "activations": "acts",
        "gradients": "grads",
        "token_id": "tokens",
        "sequence": "seq",
        "position": "pos",
    }
    assert (model["objective"], raw.get("corpora"), raw["bases"]["ranks"]) == ("none", None, [6])


def test_arrays_of_unusual_names_are_given_or_asked_for(here):
    rows = np.ones((40, 4), dtype=np.float32)
    for step in (0, 10, 100):
        dumped.write(here / "dumps" / f"step_{step}.npz", {"h1": rows, "h2": rows, "n": np.arange(40)})
    with pytest.raises(ConfigError, match=r"which array of dumps/step_0\.npz holds the activations"):
        made("dumps/step_{step}.npz")
    with pytest.raises(ConfigError, match="give --array sequence=NAME, or --rows-independent"):
        made("dumps", "--array", "activations=h1")
    raw = yaml.safe_load(made("dumps", "--array", "activations=h1", "gradients=h2", "sequence=n").text)
    assert raw["models"]["dumps"]["source"]["arrays"] == {"activations": "h1", "sequence": "n", "gradients": "h2"}
    independent = made("dumps", "--array", "activations=h1", answers=["", "yes"])
    assert yaml.safe_load(independent.text)["models"]["dumps"]["source"]["rows_independent"] is True
    with pytest.raises(ConfigError, match="'acts' is not one of activations, gradients"):
        made("dumps", "--array", "acts=h1")


def test_a_model_of_images_reads_images(here):
    vit = {"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2}
    series(here / "runs" / "eye", named="ViTForImageClassification", tokenizer=False, **vit)
    (here / "runs" / "eye" / "checkpoint-0" / "preprocessor_config.json").write_text("{}")
    (here / "photo.png").write_bytes(b"not looked into")
    with pytest.raises(ConfigError, match="new: give --text"):
        made("runs/eye")
    raw = yaml.safe_load(made("runs/eye", "--text", "photo.png").text)
    model = raw["models"]["eye"]
    assert (model["objective"], model["modality"]) == ("none", "image")
    assert raw["corpora"] == {"images": {"source": "images", "paths": ["photo.png"]}}


def test_kinds_are_told_by_what_lies_there(here):
    series(here / "runs" / "mine")
    dumped.write(here / "dumps" / "step_0.npz", dumped.arrays())
    kinds = {place: kind_of(place) for place in ("runs/mine", "runs/mine/checkpoint-{step}", "dumps", "org/name")}
    assert list(kinds.values()) == ["local", "local", "vectors", "hub"]
    assert kind_of("anywhere/step_{step}.npz") == "vectors"
    with pytest.raises(ConfigError, match="new: no folder nothing, and it is no repo's name"):
        kind_of("nothing")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runs"], "new: runs holds no folders of checkpoints with their step in the name"),
        (["runs/mine/checkpoint-0"], "new: runs/mine/checkpoint-0 is one checkpoint, and a series needs folders"),
        (["runs/mine/model-{step}"], "new: no folder matches 'runs/mine/model-{step}'"),
        (["runs/mine", "--array", "activations=x"], "new --array: is of dumped vectors, and runs/mine is local"),
        (["runs/mine", "--text", "none.txt"], "corpora.text.paths: "),
        (["runs/mine", "--name", "a b"], "study: "),
        (["runs/mine", "--text", "texts/one.txt", "--total-steps", "5"], "models.mine.total_steps: 5 is below"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(here, capsys, arguments, said):
    series(here / "runs" / "mine")
    assert main(["new", *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"isotrace: error: {said}")
    assert err.count("\n") == 1
    assert not list(here.glob("*.yaml"))
