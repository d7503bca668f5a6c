"""The pages on one's own run and on the hub as written: their files are written, their commands are run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from running import copy_repository

from documented import blocks, commands, write_files
from hub_server import Hub, serving
from isotrace.cli import main
from isotrace.study import read

WORDS = " ".join(f"word{i % 97} of{i % 31} a{i % 53} text{i % 11}" for i in range(4000))
CONFIG = '{"model_type": "gpt_neox", "hidden_size": 32, "max_position_embeddings": 128, "vocab_size": 512}'


def texts(folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "one.txt").write_text(WORDS)


def revision(folder: Path, seed: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes((seed + i) % 251 for i in range(1000)))
    return folder


def test_the_page_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
    texts(tmp_path)
    write_files("how-to/hub.md", tmp_path)
    steps = [0, *(2**i for i in range(10)), *range(1000, 21_000, 1000)]
    revisions = {f"step{n}": revision(tmp_path / "hub" / str(n), n) for n in steps}
    with serving(Hub({"EleutherAI/pythia-160m": revisions | {"main": revisions["step20000"]}})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        for _, *arguments in commands("how-to/hub.md"):
            assert main(arguments) == 0
    written = json.loads((tmp_path / "config" / "series" / "pythia-160m.json").read_text())
    assert len(written["checkpoints"]) == len(steps)
    series = read("mine.yaml").series["pythia-160m"]
    assert len(series.ids) == 12
    assert (series.ids[0], series.ids[-1], series.total_steps) == ("step0", "step20000", 20_000)


def trained() -> None:
    """Run the page's training in the working folder, with a model and a text of a test's size."""
    import numpy as np
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<eos>"], show_progress=False)
    words.train_from_iterator([WORDS], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<eos>")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=300, max_position_embeddings=128, **sizes))
    ids = np.array(tokenizer(WORDS)["input_ids"])
    rows = ids[: len(ids) // 32 * 32].reshape(-1, 32)
    dataset = [{"input_ids": row, "labels": row} for row in torch.tensor(rows)]
    (block,) = blocks("how-to/trainer-run.md", "python")
    source = block.text.replace("20_000", "8").replace("1_000", "8")
    assert source != block.text
    exec(compile(source, block.title, "exec"), {"model": model, "dataset": dataset, "tokenizer": tokenizer})


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """The working folder: a copy of the repository with a text and a Trainer's run of the page in it."""
    folder = copy_repository(tmp_path / "isotrace")
    monkeypatch.chdir(folder)
    texts(folder)
    trained()
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_page_on_a_trainers_own_run(clone):
    write_files("how-to/trainer-run.md", clone)
    assert {p.name for p in Path("runs/mine").iterdir()} >= {f"checkpoint-{n}" for n in (1, 2, 4, 8)}
    config = Path("mine.yaml")
    config.write_text(config.read_text().replace("20000", "8"))
    said = [ran(clone, arguments) for _, *arguments in commands("how-to/trainer-run.md")]
    assert len(said) == 3
    assert "step8" in said[-1]
    lock = json.loads(Path("results/mine/checkpoints/mine.lock.json").read_text())
    assert [(c["step"], c["status"]) for c in lock["checkpoints"]] == [(n, "ok") for n in (0, 1, 2, 4, 8)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_drafted_config_of_a_trainers_run_goes_to_the_end(clone):
    (clone / "texts" / "two.txt").write_text(2 * WORDS)
    ran(clone, ["new", "runs/mine", "--text", "texts/*.txt"])
    with Path("mine.yaml").open("a") as config:  # fewer processes and figures, for the test's time
        config.write("execution: {batch_buckets: true}\nfigures: {names: [energy_over_training]}\n")
    ran(clone, ["run", "--configfile", "mine.yaml", "--cores", "2"])
    results = read("mine.yaml").results
    assert {"card/mine.html", "report.html"} <= {str(p.relative_to(results)) for p in results.rglob("*.html")}
    claims = pd.read_parquet(results / "tables" / "claims.parquet")
    assert set(claims["verdict"]) <= {"supported", "contradicted", "undecided"}
    energy = pd.read_parquet(results / "tables" / "energy.parquet")
    assert set(energy["checkpoint"]) == {f"step{n}" for n in (0, 1, 2, 4, 8)}
    assert energy["energy"].notna().mean() > 0.9


def ran(folder: Path, arguments: list[str]) -> str:
    command = [sys.executable, "-m", "isotrace", *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder / "workflow"), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout
