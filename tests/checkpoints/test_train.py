"""Training killed at any moment and run again ends in the bytes of an undisturbed run."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotrace.checkpoints.load import load_model
from isotrace.checkpoints.train import learning_rate, train
from isotrace.errors import ConfigError, DataError

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "clm": {"model_type": "gpt_neox", **SIZES, "max_position_embeddings": 16, "hidden_dropout": 0.1},
    "mlm": {"model_type": "modernbert", **SIZES, "max_position_embeddings": 16, "mlp_dropout": 0.1},
}
STEPS = [0, 1, 4, 9]
CHILD = """
import json, sys
import numpy as np
from isotrace.checkpoints.train import train
spec, ids, tokenizer, out = json.loads(sys.argv[1]), np.load(sys.argv[2]), sys.argv[3], sys.argv[4]
def progress(step, loss):
    print(step, flush=True)
    if step == 7:
        sys.stdin.read()
train(spec, ids, tokenizer, out, threads=1, progress=progress)
"""


class Killed(BaseException):
    """Stands for whatever ends a process from within."""


def spec(objective: str = "clm", **changes: Any) -> dict[str, Any]:
    base = {
        "architecture": ARCHITECTURES[objective],
        "objective": objective,
        "steps": STEPS,
        "total_steps": 9,
        "batch_size": 8,
        "learning_rate": 0.01,
        "warmup_steps": 3,
        "weight_decay": 0.1,
        "label_smoothing": 0.0,
        "isotropy_weight": 0.0,
        "isotropy_shrinkage": 0.1,
        "isotropy_site": "final_norm",
        "attention_scale": 1.0,
        "seed": 0,
        "save_every": 3,
        "mask_rate": 0.3,
        "replace": [0.8, 0.1, 0.1],
    }
    return {**base, **changes}


def digests(out: Path) -> dict[str, str]:
    files = sorted(file for file in out.rglob("*") if file.is_file())
    return {str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(scope="module")
def undisturbed(
    tokenizer_folders: dict[str, Path], ids: NDArray[np.int32], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, str]]:
    """What every file holds after a run that nothing stopped."""
    found = {}
    for objective, folder in tokenizer_folders.items():
        out = tmp_path_factory.mktemp("undisturbed")
        train(spec(objective), ids, folder, out, threads=1)
        found[objective] = digests(out)
    return found


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_every_checkpoint_is_written_and_loads(
    undisturbed: dict[str, dict[str, str]],
    tokenizer_folders: dict[str, Path],
    ids: NDArray[np.int32],
    tmp_path: Path,
    objective: str,
) -> None:
    folders = train(spec(objective), ids, tokenizer_folders[objective], tmp_path, threads=1)
    assert [folder.name for folder in folders] == [f"checkpoint-{step}" for step in STEPS]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(folder.name for folder in folders)
    assert digests(tmp_path) == undisturbed[objective]
    assert len({undisturbed[objective][f"checkpoint-{step}/model.safetensors"] for step in STEPS}) == len(STEPS)
    for folder in folders:
        load_model(folder, objective)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("killed_at", [1, 3, 5, 8])
@pytest.mark.parametrize("outputs_deleted", [False, True])
def test_a_rerun_after_an_interruption_gives_the_same_bytes(
    undisturbed: dict[str, dict[str, str]],
    tokenizer_folders: dict[str, Path],
    ids: NDArray[np.int32],
    tmp_path: Path,
    objective: str,
    killed_at: int,
    outputs_deleted: bool,
) -> None:
    def stop(step: int, loss: float) -> None:
        if step == killed_at:
            raise Killed

    with pytest.raises(Killed):
        train(spec(objective), ids, tokenizer_folders[objective], tmp_path, threads=1, progress=stop)
    if outputs_deleted:  # as Snakemake does with the outputs of a failed job
        for folder in tmp_path.glob("checkpoint-*"):
            shutil.rmtree(folder)
    steps: list[int] = []
    train(
        spec(objective), ids, tokenizer_folders[objective], tmp_path, threads=1, progress=lambda s, _: steps.append(s)
    )
    assert digests(tmp_path) == undisturbed[objective]
    saved = [step for step in (1, 3, 4, 6) if step < killed_at]
    assert steps[0] == max(saved, default=0) + 1


def test_a_killed_process_continues_in_another(
    undisturbed: dict[str, dict[str, str]],
    tokenizer_folders: dict[str, Path],
    ids: NDArray[np.int32],
    tmp_path: Path,
) -> None:
    np.save(tmp_path / "ids.npy", ids)
    out = tmp_path / "out"
    arguments = [json.dumps(spec()), str(tmp_path / "ids.npy"), str(tokenizer_folders["clm"]), str(out)]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    assert child.stdin is not None
    while child.stdout.readline().strip() != "7":
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdin.close()
    child.stdout.close()
    assert (out / "checkpoint-4").is_dir()
    assert not (out / "checkpoint-9").exists()
    steps: list[int] = []
    train(spec(), ids, tokenizer_folders["clm"], out, threads=1, progress=lambda step, _: steps.append(step))
    assert steps == [7, 8, 9]
    assert digests(out) == undisturbed["clm"]


def test_a_changed_spec_starts_over(tokenizer_folders: dict[str, Path], ids: NDArray[np.int32], tmp_path: Path) -> None:
    def stop(step: int, loss: float) -> None:
        if step == 8:
            raise Killed

    folder = tokenizer_folders["clm"]
    with pytest.raises(Killed):
        train(spec(), ids, folder, tmp_path / "a", threads=1, progress=stop)
    changed = spec(seed=1, steps=[0, 9])
    train(changed, ids, folder, tmp_path / "a", threads=1)
    train(changed, ids, folder, tmp_path / "b", threads=1)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_loss_falls_on_a_text_that_repeats(
    tokenizer_folders: dict[str, Path], tmp_path: Path, objective: str
) -> None:
    repeated = np.tile(np.arange(10, 26, dtype=np.int32), (16, 1))
    losses: list[float] = []
    long = spec(objective, total_steps=60, steps=[60], save_every=1000)
    train(long, repeated, tokenizer_folders[objective], tmp_path, threads=1, progress=lambda _, x: losses.append(x))
    assert losses[0] == pytest.approx(np.log(280), abs=0.3)
    assert losses[-1] < 0.5 * losses[0]


def test_the_rate_rises_and_falls() -> None:
    rates = [learning_rate(spec(total_steps=100, warmup_steps=10), step) for step in range(1, 101)]
    assert rates[9] == max(rates) == pytest.approx(0.01)
    assert rates[0] == pytest.approx(0.001)
    assert rates[-1] == pytest.approx(0.001)
    assert np.all(np.diff(rates[9:]) < 0)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"steps": [0, 10]}, ConfigError, "between 0 and total_steps 9"),
        ({"batch_size": 41}, DataError, "do not fill a batch of 41"),
        ({"architecture": {**ARCHITECTURES["clm"], "vocab_size": 100}}, DataError, "raise vocab_size"),
    ],
)
def test_an_impossible_training_is_refused(
    tokenizer_folders: dict[str, Path],
    ids: NDArray[np.int32],
    tmp_path: Path,
    change: dict[str, Any],
    error: type[Exception],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        train(spec(**change), ids, tokenizer_folders["clm"], tmp_path, threads=1)
