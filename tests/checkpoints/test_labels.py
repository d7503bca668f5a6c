"""Labels of public series are read as numbers, in numeric order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrace.checkpoints.labels import Label, checkpoint_ids, count, read_label
from isotrace.errors import ConfigError


@pytest.mark.parametrize(
    ("family", "text", "expected"),
    [
        ("pythia", "step1000", (1000, None, None, None)),
        ("smollm", "step-160000", (160000, None, None, None)),
        ("generic", "step_360", (360, None, None, None)),
        ("olmo", "step20000-tokens84B", (20000, 84 * 10**9, None, None)),
        ("olmo2", "stage1-step10000-tokens21B", (10000, 21 * 10**9, 1, None)),
        ("olmo2", "stage2-ingredient3-step2000-tokens9B", (2000, 9 * 10**9, 2, 3)),
        ("trainer", "checkpoint-500", (500, None, None, None)),
        ("multibert", "google/multiberts-seed_0-step_20k", (20000, None, None, None)),
        ("generic", "global_step143000", (143000, None, None, None)),
        (r"ckpt\.(?P<step>\d+)", "ckpt.7", (7, None, None, None)),
    ],
)
def test_a_label_of_its_family(family: str, text: str, expected: tuple[int | None, ...]) -> None:
    label = read_label(text, family)
    assert label is not None
    assert (label.step, label.tokens, label.stage, label.ingredient) == expected


@pytest.mark.parametrize(
    "text", ["step1000", "step-1000", "stage1-step1000-tokens21B", "checkpoint-1000", "multiberts-seed_0-step_1k"]
)
def test_the_generic_pattern_reads_every_family(text: str) -> None:
    label = read_label(text)
    assert label is not None
    assert (label.step, label.tokens) == (1000, 21 * 10**9 if "21B" in text else None)


@pytest.mark.parametrize("text", ["main", "fp16", "v1.0", "step", "step1000-old"])
def test_another_branch_is_none(text: str) -> None:
    assert read_label(text) is None
    assert read_label(text, "pythia") is None


@given(steps=st.lists(st.integers(0, 10**6), unique=True, min_size=1))
def test_order_is_numeric(steps: list[int]) -> None:
    labels = [read_label(f"step{step}") for step in steps]
    ordered = sorted((label for label in labels if label), key=lambda label: label.order)
    assert [label.step for label in ordered] == sorted(steps)


def test_counts_have_suffixes() -> None:
    assert [count(text) for text in ("7", "20k", "1.5M", "84B", "3T")] == [7, 20_000, 1_500_000, 84 * 10**9, 3 * 10**12]


def test_ids_tell_shared_steps_apart() -> None:
    labels = [Label("step5", 5), Label("stage2/ingredient1 step9", 9), Label("stage2-ingredient2-step9", 9)]
    assert checkpoint_ids(labels) == ["step5", "step9-stage2-ingredient1-step9", "step9-stage2-ingredient2-step9"]


@pytest.mark.parametrize("family", ["bloom", r"step(\d+)", "step(?P<step>"])
def test_a_pattern_without_a_step_is_a_config_error(family: str) -> None:
    with pytest.raises(ConfigError, match="label pattern"):
        read_label("step1", family)
