"""Code that comes with a model: fetched at the pinned commit, checked, run from there only, and never without a pin."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hub_server import Hub
from isotrace.checkpoints.initialise import initial_model, write_checkpoint
from isotrace.corpus.tokenizer import load_tokenizer, train_tokenizer
from isotrace.errors import ConfigError, DataError
from isotrace.hub.client import Client
from isotrace.hub.prefetch import prefetch, prefetch_beside
from isotrace.hub.write import write_series
from isotrace.params import Params
from isotrace.study import Study, load, validated
from isotrace.yamlfile import read_mapping
from own_code import give_code, name_code

SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TEXTS = [f"the river number {i} runs past stone {i * i}" for i in range(60)]
LOAD = """
import sys
from isotrace.checkpoints.load import load_model
from isotrace.corpus.tokenizer import load_tokenizer
try:
    folder, commit, what = sys.argv[1], sys.argv[2] or None, sys.argv[3]
    if what == "model":
        print(type(load_model(folder, "clm", remote_code=commit)).__name__)
    else:
        print(len(load_tokenizer(folder, commit)))
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def own(hub: Hub, tmp_path: Path) -> Hub:
    """``org/own``: steps with code that sets off a trap, and ``reviewed`` with code that does not."""
    words = tmp_path / "words"
    train_tokenizer(TEXTS, words, {"vocab_size": 300, "objective": "clm"})
    tokenizer = load_tokenizer(words)
    architecture = {"model_type": "gpt_neox", **SIZES, "max_position_embeddings": 64}
    revisions = {}
    for seed, name in enumerate(("step0", "step8", "step100", "reviewed")):
        revisions[name] = tmp_path / "own" / name
        write_checkpoint(initial_model(architecture, "clm", tokenizer, seed), words, revisions[name])
        name_code(revisions[name])
        give_code(revisions[name], trap=None if name == "reviewed" else tmp_path / "trap")
    hub.repos["org/own"] = revisions
    return hub


@pytest.fixture
def pinned(own: Hub, configured: Any) -> Study:
    """A study that pins the reviewed code, resolved."""
    raw = read_mapping(configured(repo="org/own", remote_code=own.commit("org/own", "reviewed")))
    write_series("decoder", validated(raw), Client(pause=0.01))
    return load(raw)


@pytest.fixture
def fetched(pinned: Study, tmp_path: Path) -> Path:
    """Step 8 as rule prefetch leaves it."""
    spec = Params(pinned).prefetch("decoder", "step8")
    folder = tmp_path / "results" / "weights" / "decoder" / "step8"
    prefetch(spec["download"], folder, "decoder", code=spec["code_files"], pause=0.01)
    return folder


def loaded(folder: Path, commit: str, what: str = "model") -> subprocess.CompletedProcess[str]:
    """Load it in a process of its own, whose home folder is empty."""
    home = folder.parents[3] / "home"
    home.mkdir(exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if k not in ("HF_ENDPOINT", "HF_HOME", "HF_MODULES_CACHE")}
    environment = kept | {"HOME": str(home), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", LOAD, str(folder), commit, what]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_the_pinned_code_loads_a_checkpoint_of_another_commit(own: Hub, fetched: Path, tmp_path: Path) -> None:
    commit = own.commit("org/own", "reviewed")
    result = loaded(fetched, commit)
    assert result.stdout == "TinyOwnForCausalLM\n", result.stderr
    assert not (tmp_path / "trap").exists()
    assert not list((tmp_path / "home").rglob("*.py"))
    manifest = json.loads((fetched / "prefetch.json").read_text())
    assert manifest["commit"] == own.commit("org/own", "step8")
    assert manifest["code"]["commit"] == commit
    assert set(manifest["code"]["files"]) == {"configuration_tiny.py", "modeling_tiny.py"}


def test_without_a_pin_no_code_is_fetched_or_run(own: Hub, configured: Any, tmp_path: Path) -> None:
    raw = read_mapping(configured(repo="org/own"))
    write_series("decoder", validated(raw), Client(pause=0.01))
    spec = Params(load(raw)).prefetch("decoder", "step8")
    assert "code_files" not in spec
    folder = tmp_path / "results" / "weights" / "decoder" / "step8"
    prefetch(spec["download"], folder, "decoder", pause=0.01)
    assert own.asked("GET", ".py") == 0
    result = loaded(folder, "")
    assert result.stderr.startswith("DataError: ")
    assert "needs Python code of its own" in result.stderr
    assert "models.MODEL.source.remote_code: COMMIT" in result.stderr
    assert result.stderr.count("\n") == 1


def test_code_that_lies_in_the_folder_does_not_run_without_a_pin(fetched: Path, tmp_path: Path) -> None:
    give_code(fetched, trap=tmp_path / "trap")
    assert "needs Python code of its own" in loaded(fetched, "").stderr
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("change", ["changed", "added", "taken away", "another commit", "no manifest"])
def test_code_that_is_not_what_was_fetched_does_not_run(own: Hub, fetched: Path, tmp_path: Path, change: str) -> None:
    commit = own.commit("org/own", "reviewed")
    if change == "changed":
        give_code(fetched, trap=tmp_path / "trap")
    elif change == "added":
        (fetched / "more").mkdir()
        (fetched / "more" / "code.py").write_text("")
    elif change == "taken away":
        (fetched / "modeling_tiny.py").unlink()
    elif change == "another commit":
        commit = "0" * 40
    else:
        (fetched / "prefetch.json").unlink()
    result = loaded(fetched, commit)
    assert result.stderr.startswith("DataError: ")
    assert "fetch the series again" in result.stderr
    assert not (tmp_path / "trap").exists()


def test_code_in_another_repo_is_refused(own: Hub, fetched: Path) -> None:
    file = fetched / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps(config | {"auto_map": {"AutoConfig": "org/other--configuration.Config"}}))
    result = loaded(fetched, own.commit("org/own", "reviewed"))
    assert "takes its code from another repo, org/other" in result.stderr


def test_other_bytes_than_resolved_are_refused(own: Hub, pinned: Study, tmp_path: Path) -> None:
    give_code(own.repos["org/own"]["reviewed"], trap=tmp_path / "trap")
    spec = Params(pinned).prefetch("decoder", "step8")
    with pytest.raises(DataError, match=r"configuration_tiny.py at .*not the file that the series file lists"):
        prefetch(spec["download"], tmp_path / "a" / "b" / "c", "decoder", code=spec["code_files"], pause=0.01)


def test_the_tokenizer_has_the_code_beside_it(own: Hub, pinned: Study, tmp_path: Path) -> None:
    spec = Params(pinned).prefetch_tokenizer("decoder")
    folder = tmp_path / "results" / "weights" / "decoder" / "tokenizer"
    prefetch_beside(spec["downloads"], folder, "decoder", code=spec["code_files"])
    assert {"modeling_tiny.py", "tokenizer.json", "config.json"} <= {file.name for file in folder.iterdir()}
    assert loaded(folder, own.commit("org/own", "reviewed"), "tokenizer").stdout == "300\n"
    assert not (tmp_path / "trap").exists()
    assert Params(pinned).tokens("decoder")["remote_code"] == pinned.models["decoder"].source.remote_code


def test_another_pin_than_resolved_names_the_command(own: Hub, pinned: Study, configured: Any) -> None:
    for commit in (own.commit("org/own", "step0"), own.commit("org/own", "step8")):
        with pytest.raises(ConfigError, match=r"source.remote_code: '.*lists that of .*run: isotrace resolve decoder"):
            load(read_mapping(configured(repo="org/own", remote_code=commit)))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"remote_code": "main"}, "models.decoder.source.remote_code: "),
        (
            {"remote_code": "a" * 40, "repo": "org/own-step_{step}"},
            "models.decoder.source: remote_code: a commit is",
        ),
        ({"remote_code": "a" * 40, "with_init": True}, "models.decoder.source: remote_code: code of a model's own"),
        ({"kind": "local", "path": "x/{step}", "remote_code": "a" * 40}, "models.decoder.source.remote_code: unknown"),
    ],
    ids=["a branch", "a repo a checkpoint", "with a random step 0", "on disk"],
)
def test_an_impossible_pin_is_one_line(source: dict[str, Any], said: str, tmp_path: Path) -> None:
    from configs import smoke

    given = {"kind": "hub", "repo": "org/own"} | source
    given = {k: v for k, v in given.items() if given["kind"] == "hub" or k != "repo"}
    with pytest.raises(ConfigError) as caught:
        validated(smoke({"models.decoder.source": given}))
    assert str(caught.value).startswith(said)


def test_a_commit_without_code_is_refused_by_resolve(own: Hub, configured: Any) -> None:
    raw = read_mapping(configured(remote_code=own.commit("org/tiny", "main")))
    with pytest.raises(DataError, match=r"source.remote_code: org/tiny holds no \*.py at"):
        write_series("decoder", validated(raw), Client(pause=0.01))
