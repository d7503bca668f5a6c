"""The same seed gives the same weights, in this process or another; unknown fields are refused."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from isotrace.checkpoints.initialise import initial_model, initialise
from isotrace.corpus.tokenizer import load_tokenizer
from isotrace.errors import ConfigError, DataError

AGAIN = """
import json, sys
from isotrace.checkpoints.initialise import initial_model, write_checkpoint
from isotrace.corpus.tokenizer import load_tokenizer
architecture, tokenizer, out = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
write_checkpoint(initial_model(architecture, "clm", load_tokenizer(tokenizer), 0), tokenizer, out)
"""
SMALL = {"model_type": "gpt_neox", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_a_seed_fixes_the_weights(make_checkpoint: Callable[..., Path]) -> None:
    first, again, other = (make_checkpoint(seed=s, name=n) for s, n in ((0, "a"), (0, "b"), (1, "c")))
    assert digest(first) == digest(again) != digest(other)


def test_another_process_draws_the_same(
    make_checkpoint: Callable[..., Path], tokenizer_folders: dict[str, Path], tmp_path: Path
) -> None:
    here = make_checkpoint(**SMALL)
    config = json.loads((here / "config.json").read_text())
    architecture = {name: config[name] for name in (*SMALL, "intermediate_size", "max_position_embeddings")}
    arguments = [json.dumps(architecture), str(tokenizer_folders["clm"]), str(tmp_path / "there")]
    subprocess.run([sys.executable, "-c", AGAIN, *arguments], check=True, capture_output=True)
    assert digest(here) == digest(tmp_path / "there")


def test_a_checkpoint_is_whole_and_carries_its_tokenizer(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint("mlm")
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file.name for file in folder.iterdir()}
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    tokenizer = load_tokenizer(folder)
    config = json.loads((folder / "config.json").read_text())
    assert (config["pad_token_id"], config["vocab_size"]) == (tokenizer.pad_token_id, len(tokenizer))


@pytest.mark.parametrize(
    ("architecture", "objective", "says"),
    [
        ({**SMALL, "hiden_size": 4}, "clm", "has no field hiden_size"),
        ({**SMALL, "model_type": "gpt_neo_y"}, "clm", "not one that transformers knows"),
        (SMALL, "plm", "allowed are clm, mlm"),
        (SMALL, "mlm", "with objective 'mlm'"),
    ],
)
def test_an_impossible_architecture_is_a_config_error(
    tokenizer_folders: dict[str, Path], architecture: dict[str, object], objective: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        initial_model(architecture, objective, load_tokenizer(tokenizer_folders["clm"]), 0)


def test_a_stored_architecture_is_drawn_anew_in_float32(make_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file

    stored = make_checkpoint(**SMALL, dtype="bfloat16", vocab_size=300)
    spec = {"seed": 5, "objective": "clm", "architecture": None}
    found = initialise(spec, stored, stored / "config.json", tmp_path / "init")
    kept, drawn = (load_file(folder / "model.safetensors") for folder in (stored, tmp_path / "init"))
    assert {name: t.shape for name, t in kept.items()} == {name: t.shape for name, t in drawn.items()}
    assert {str(t.dtype) for t in drawn.values()} == {"torch.float32"}
    embedding = "gpt_neox.embed_in.weight"
    assert not kept[embedding].equal(drawn[embedding])
    assert not drawn[embedding].equal(drawn[embedding].bfloat16().float())
    assert found == {"seed": 5, "model_type": "gpt_neox", "parameters": sum(t.numel() for t in drawn.values())}


def test_of_another_checkpoints_folder_only_the_tokenizer_is_taken(
    make_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    stored = make_checkpoint(**SMALL)
    for name in (
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "optimizer.pt",
        "pytorch_model.bin",
    ):
        (stored / name).write_bytes(b"")
    initialise({"seed": 0, "objective": "clm", "architecture": None}, stored, stored / "config.json", tmp_path / "init")
    assert sorted(file.name for file in (tmp_path / "init").iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_an_encoder_decoder_is_drawn_with_the_head_it_is_loaded_with(tokenizer_folders: dict[str, Path]) -> None:
    sizes = {"d_model": 8, "num_layers": 1, "num_heads": 2, "d_kv": 4, "d_ff": 16}
    model = initial_model({"model_type": "t5", **sizes}, "mlm", load_tokenizer(tokenizer_folders["mlm"]), 0)
    assert type(model).__name__ == "T5ForConditionalGeneration"


def test_a_file_that_is_no_config_is_named(tokenizer_folders: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"hidden_size": 8}')
    with pytest.raises(DataError, match=r"config\.json: no config that transformers reads") as caught:
        initial_model(file, "clm", load_tokenizer(tokenizer_folders["clm"]), 0)
    assert "\n" not in str(caught.value)
