"""A lock names duplicates, shared tensors and checkpoints out of place, in the order of steps."""

from typing import Any

import numpy as np
import pytest

from isotrace.checkpoints.lock import findings, lock, refuse_broken, relative_distance
from isotrace.checkpoints.sketch import packed
from isotrace.errors import DataError


def audit(step: int, value: float | None = None, **changes: Any) -> dict[str, Any]:
    """An audit of a model with three tensors, whose sketch lies at ``value`` (its step) on a line."""
    place = float(step if value is None else value)
    digests = {"embed": f"e{place}", "block": f"b{place}", "norm": "ones"}
    base = {
        "id": f"step{step}",
        "step": step,
        "tokens_seen": step * 100,
        "status": "ok",
        "reason": "",
        "tensor_digests": digests,
        "tensors_digest": f"t{place}",
        "constant_tensors": ["norm"],
        "sketch": [place, 1.0],
        "matrix_sketch": packed(np.array([place + 1.0, 100.0])),
        "norm": 10.0,
        "dtypes": {"F32": 3},
        "head_differs": False,
        "saved_step": None,
    }
    return {**base, **changes}


def broken(step: int) -> dict[str, Any]:
    nothing = {"tensor_digests": {}, "tensors_digest": None, "sketch": [], "norm": None, "dtypes": {}}
    return audit(step, status="broken", reason="no weights", **nothing)


def test_checkpoints_are_by_step_with_distances_to_the_one_before() -> None:
    made = lock("m", "local", 100, [audit(100), audit(0), audit(9)])
    assert (made["model"], made["provider"], made["total_steps"]) == ("m", "local", 100)
    assert [c["id"] for c in made["checkpoints"]] == ["step0", "step9", "step100"]
    assert [c["neighbour_distance"] for c in made["checkpoints"]] == [None, pytest.approx(0.9), pytest.approx(9.1)]
    assert findings(made) == []


def test_a_duplicate_names_the_first() -> None:
    made = lock("m", "local", 3, [audit(0), audit(1, 0.0), audit(2, 0.0), audit(3)])
    by_id = {c["id"]: c for c in made["checkpoints"]}
    assert [by_id[f"step{i}"]["status"] for i in range(4)] == ["ok", "duplicate", "duplicate", "ok"]
    assert by_id["step2"]["duplicate_of"] == "step0"
    assert by_id["step2"]["reason"] == "the same tensors as step0"
    assert by_id["step3"]["neighbour_distance"] == pytest.approx(0.3)
    assert [row["finding"] for row in findings(made)] == ["duplicate", "duplicate"]


def test_shared_tensors_are_named_without_constants() -> None:
    mixed = audit(5)
    mixed["tensor_digests"] = {**mixed["tensor_digests"], "embed": "e0.0"}
    made = lock("m", "local", 9, [audit(0), mixed, audit(9)])
    assert made["checkpoints"][1]["shared_tensors_with"] == {"step0": ["embed"]}
    assert findings(made) == [
        {
            "model": "m",
            "checkpoint": "step5",
            "step": 5,
            "finding": "shared_tensors",
            "severity": "warning",
            "detail": "1 tensors are those of step0: embed",
        }
    ]


def test_a_broken_checkpoint_is_an_error_and_no_neighbour() -> None:
    made = lock("m", "local", 9, [audit(0), broken(5), audit(9)])
    assert made["checkpoints"][1]["status"] == "broken"
    assert made["checkpoints"][1]["neighbour_distance"] is None
    assert made["checkpoints"][2]["neighbour_distance"] == pytest.approx(0.9)
    assert [(row["finding"], row["severity"], row["detail"]) for row in findings(made)] == [
        ("broken", "error", "no weights")
    ]


def test_a_checkpoint_out_of_place_is_found() -> None:
    made = lock("m", "local", 40, [audit(10), audit(20, 200.0), audit(30), audit(40)])
    assert [(row["checkpoint"], row["finding"]) for row in findings(made)] == [("step20", "out_of_place")]


def test_a_distance_needs_two_sketches() -> None:
    assert relative_distance(audit(1), broken(0)) is None
    sketches = np.random.default_rng(0).normal(size=(2, 64))
    a, b = audit(0, sketch=sketches[0].tolist()), audit(1, sketch=sketches[1].tolist())
    assert relative_distance(a, b) == pytest.approx(np.linalg.norm(sketches[0] - sketches[1]) / 10.0)


def test_broken_checkpoints_stop_the_run_only_where_that_is_wanted() -> None:
    refuse_broken([audit(0), broken(5)], "skip")
    refuse_broken([audit(0)], "error")
    with pytest.raises(DataError, match=r"^on_broken is error: step5: no weights; step7: no weights$"):
        refuse_broken([audit(0), broken(5), broken(7)], "error")
