"""Series with every defect that was reported of public ones: each is found and named, and a clean one says nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_train import spec as training

from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.checkpoints.lock import findings, lock
from isotrace.checkpoints.overview import overview
from isotrace.checkpoints.train import train

State = dict[str, Any]
Told = list[tuple[str, str]]
STEPS = (0, 10, 20, 30, 40)
EMBEDDING, HEAD = "gpt_neox.embed_in.weight", "embed_out.weight"


class Run:
    """Five checkpoint folders whose weights drift from a common start, as in training; their files may be edited."""

    def __init__(self, make: Callable[..., Path], **changes: Any) -> None:
        self.folders = {step: make(name=f"checkpoint-{step}", **changes) for step in STEPS}
        for step in STEPS:
            self.edit(step, lambda state, step=step: drifted(state, step))

    def edit(self, step: int, change: Callable[[State], State]) -> None:
        file = self.folders[step] / "model.safetensors"
        save_file(change(load_file(file)), file, {"format": "pt"})

    def state(self, step: int) -> State:
        return load_file(self.folders[step] / "model.safetensors")

    def swap(self, a: int, b: int) -> None:
        states = self.state(a), self.state(b)
        self.edit(a, lambda _: states[1])
        self.edit(b, lambda _: states[0])

    def lock(self, **known: Any) -> dict[str, Any]:
        audits = [audited(folder, step) for step, folder in self.folders.items()]
        return lock("m", "local", 40, audits, **known)

    def told(self, **known: Any) -> Told:
        return [(row["checkpoint"], row["finding"]) for row in findings(self.lock(**known))]


def audited(folder: Path, step: int) -> dict[str, Any]:
    spec = {"id": f"step{step}", "step": step, "tokens_seen": None, "objective": "clm", "config": None}
    return audit_checkpoint(folder, {**spec, "remote_code": None, "source": {"path": str(folder), "commit": None}})


def drifted(state: State, step: int) -> State:
    """A random walk with a steady part: ten steps move a weight by about a tenth of its size."""
    generator = torch.Generator().manual_seed(1)
    moved = dict(state)
    for _ in range(-1, step, 10):
        for name in sorted(moved):
            moved[name] = moved[name] + 0.002 * torch.randn(state[name].shape, generator=generator)
    return moved


@pytest.fixture
def run(make_checkpoint: Callable[..., Path]) -> Run:
    return Run(make_checkpoint)


def detail(run: Run) -> str:
    return findings(run.lock())[0]["detail"]


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": True}])
def test_a_clean_series_says_nothing_whatever_its_head(make_checkpoint: Callable[..., Path], changes: State) -> None:
    run = Run(make_checkpoint, **changes)
    assert (HEAD in run.state(0)) != bool(changes)
    assert run.told() == []


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_a_trained_series_says_nothing(
    objective: str, ids: Any, tokenizer_folders: dict[str, Path], tmp_path: Path
) -> None:
    train(training(objective), ids, tokenizer_folders[objective], tmp_path, threads=1)
    audits = []
    for step in training()["steps"]:
        known = {"id": f"step{step}", "step": step, "tokens_seen": 0, "objective": objective, "config": None}
        known |= {"remote_code": None, "source": {"commit": None}}
        audits.append(audit_checkpoint(tmp_path / f"checkpoint-{step}", known))
    assert findings(lock("m", "train", 9, audits)) == []


def test_neox_names_its_head_otherwise_on_disk_and_either_name_is_read(run: Run) -> None:
    run.edit(20, lambda state: {("lm_head.weight" if k == HEAD else k): v for k, v in state.items()})
    assert run.told() == []


def test_two_identical_checkpoints(run: Run) -> None:
    run.edit(30, lambda _: run.state(20))
    assert run.told() == [("step30", "duplicate")]


def test_one_with_the_embeddings_of_a_later_one(run: Run) -> None:
    run.edit(10, lambda state: {**state, EMBEDDING: run.state(40)[EMBEDDING]})
    assert ("step40", "shared_tensors") in run.told()
    shared = next(row for row in findings(run.lock()) if row["finding"] == "shared_tensors")
    assert shared["detail"] == "1 tensors are those of step10: gpt_neox.embed_in.weight"


def test_tensors_that_never_move_are_told_once(run: Run) -> None:
    for step in STEPS[1:]:
        run.edit(step, lambda state: {**state, EMBEDDING: run.state(0)[EMBEDDING]})
    assert run.told() == [("step0", "frozen_tensors")]


@pytest.mark.parametrize("prefix", ["module.", "model.", "_orig_mod.", "gpt_neox."])
def test_a_wrong_prefix_in_every_key(run: Run, prefix: str) -> None:
    run.edit(10, lambda state: {f"{prefix}{name}": tensor for name, tensor in state.items()})
    assert run.told() == [("step10", "broken")]
    assert "missing (" in detail(run)
    assert f"unexpected ({prefix}" in detail(run)


@pytest.mark.parametrize("name", [EMBEDDING, HEAD, "gpt_neox.layers.1.mlp.dense_4h_to_h.bias"])
def test_a_tensor_missing(run: Run, name: str) -> None:
    run.edit(10, lambda state: {k: v for k, v in state.items() if k != name})
    assert run.told() == [("step10", "broken")]
    assert f"1 missing ({'lm_head.weight' if name == HEAD else name})" in detail(run)


def test_mixed_dtypes(run: Run) -> None:
    run.edit(10, lambda state: {**state, HEAD: state[HEAD].half()})
    run.edit(30, lambda state: {name: tensor.bfloat16() for name, tensor in state.items()})
    assert run.told() == [("step10", "mixed_dtype"), ("step30", "mixed_dtype")]
    assert detail(run) == "stored as 1 F16, 27 F32; the series as 28 F32"


def test_a_mix_of_dtypes_that_all_share_is_no_defect(run: Run) -> None:
    for step in STEPS:
        run.edit(step, lambda state: {n: t.bfloat16() if t.ndim > 1 else t for n, t in state.items()})
    assert run.told() == []


def test_a_truncated_file(run: Run) -> None:
    file = run.folders[10] / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert run.told() == [("step10", "broken")]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(run: Run, value: float) -> None:
    run.edit(10, lambda state: {**state, HEAD: state[HEAD].index_fill(0, torch.tensor([3]), value)})
    assert run.told() == [("step10", "broken")]
    assert "1 tensors are not finite (lm_head.weight)" in detail(run)


@pytest.mark.parametrize("pair", [(10, 20), (20, 30), (30, 40)])
def test_two_checkpoints_in_each_others_place(run: Run, pair: tuple[int, int]) -> None:
    run.swap(*pair)
    assert run.told() == [(f"step{pair[0]}", "out_of_order")]


def test_a_trainer_wrote_another_step_than_the_name_says(run: Run) -> None:
    (run.folders[20] / "trainer_state.json").write_text('{"global_step": 25}')
    (run.folders[30] / "trainer_state.json").write_text('{"global_step": 30}')
    (run.folders[40] / "trainer_state.json").write_text("{")
    assert run.told() == [("step20", "other_step")]


def test_a_tied_head_that_is_stored_and_another(make_checkpoint: Callable[..., Path]) -> None:
    run = Run(make_checkpoint, tie_word_embeddings=True)
    run.edit(10, lambda state: {**state, HEAD: state[EMBEDDING].clone()})
    run.edit(30, lambda state: {**state, HEAD: state[EMBEDDING] + 0.01})
    found = run.told()
    assert ("step30", "untied_head") in found
    assert ("step10", "untied_head") not in found


def test_a_first_step_that_is_another_init(run: Run, make_checkpoint: Callable[..., Path]) -> None:
    other = load_file(make_checkpoint(seed=1, name="other") / "model.safetensors")
    run.edit(0, lambda _: other)
    assert run.told() == [("step0", "other_init")]
    assert run.told(drawn=["step0"]) == []  # this study drew it itself, and says so


def test_a_series_of_two_runs(run: Run, make_checkpoint: Callable[..., Path]) -> None:
    other = load_file(make_checkpoint(seed=1, name="other") / "model.safetensors")
    for step in (20, 30, 40):
        run.edit(step, lambda _, step=step: drifted(other, step))
    assert run.told() == [("step20", "other_run")]


def test_one_checkpoint_of_another_run(run: Run, make_checkpoint: Callable[..., Path]) -> None:
    other = load_file(make_checkpoint(seed=1, name="other") / "model.safetensors")
    run.edit(20, lambda _: other)
    assert run.told() == [("step20", "out_of_place")]


def test_seeds_at_one_step_are_no_series_to_order(make_checkpoint: Callable[..., Path]) -> None:
    audits = [{**audited(make_checkpoint(seed=s, name=f"i{s}"), 0), "id": f"step0-seed{s}"} for s in range(4)]
    assert findings(lock("m", "init", 1, audits)) == []


def test_a_first_stretch_longer_than_the_next_is_not_judged(run: Run, make_checkpoint: Callable[..., Path]) -> None:
    other = load_file(make_checkpoint(seed=1, name="other") / "model.safetensors")
    run.edit(0, lambda _: other)
    run.folders = {0: run.folders[0], 100: run.folders[10], 110: run.folders[20]}
    assert run.told() == []


def test_what_lies_beside_is_told_without_a_step(run: Run) -> None:
    made = run.lock(left_out=[{"name": "tmp-checkpoint-50", "reason": "half-written"}])
    assert findings(made) == [
        {
            "model": "m",
            "checkpoint": "tmp-checkpoint-50",
            "step": None,
            "finding": "left_out",
            "severity": "warning",
            "detail": "half-written",
        }
    ]


def test_the_overview_shows_every_checkpoint_and_marks_what_is_out_of_place(run: Run) -> None:
    run.swap(20, 30)
    run.edit(40, lambda _: run.state(0))
    rows = overview(run.lock(left_out=[{"name": "tmp", "reason": "half-written"}]))
    assert [row["checkpoint"] for row in rows] == ["step0", "step10", "step20", "step30", "step40", "tmp"]
    assert rows[4]["copy of"] == "step0"
    assert [row["distance"].endswith("!") for row in rows] == [False, False, True, False, False, False]
    assert rows[1]["dtype"] == "F32"
    assert len(rows[1]["digest"]) == 12
    assert rows[5]["findings"] == "left_out: half-written"
