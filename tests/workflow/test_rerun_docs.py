"""The tables of config/README.md on what a change reruns are what Snakemake's graph gives."""

import subprocess
import sys

import pytest
from running import ROOT

from isotrace.reruns.effects import closures, effect, order_of
from isotrace.reruns.graph import Graph, Job
from isotrace.reruns.table import PAGE, long, short

WAY = {
    "capture": [],
    "energy": ["capture"],
    "bases": ["capture"],
    "controls": ["bases"],
    "table": ["energy", "controls"],
}
PRINT = "from isotrace.reruns.table import page; print(page(), end='')"


def made(params: dict[str, str] | None = None, *, checkpoints: int = 2) -> Graph:
    """A job of each rule a checkpoint, one table of all; params by rule."""
    jobs = []
    for rule, above in WAY.items():
        each = [""] if rule == "table" else [str(i) for i in range(checkpoints)]
        for name in each:
            names = [str(i) for i in range(checkpoints)] if rule == "table" else [name]
            inputs = frozenset(f"{one}{i}" for one in above for i in names)
            jobs.append(Job(rule, (params or {}).get(rule, ""), inputs, (f"{rule}{name}",)))
    return Graph(tuple(jobs), ())


@pytest.mark.parametrize(
    ("after", "first", "new", "again", "added"),
    [
        (made(), (), (), (), ()),
        (made({"energy": "x"}), ("energy",), (), ("energy", "table"), ()),
        (made({"bases": "x", "table": "x"}), ("bases",), (), ("bases", "controls", "table"), ()),
        (made(checkpoints=3), (), ("capture",), ("table",), ("capture", "bases", "controls", "energy")),
        (made(checkpoints=1), ("table",), (), ("table",), ()),
    ],
)
def test_what_differs_runs_again_with_all_below(after, first, new, again, added):
    found = effect(made(), after)
    assert (found.first, found.new, found.again, found.added) == (first, new, again, added)


def test_rules_come_in_the_order_of_the_data():
    assert list(order_of(made())) == ["capture", "bases", "controls", "energy", "table"]
    assert closures(made())["bases"] == ("controls", "table")


def test_a_short_line_means_what_the_long_one_says():
    below = closures(made())
    assert short(["energy", "table"], below) == "energy on"
    assert short(["capture", "table"], below) == "capture, table"
    for rules in (["bases", "controls", "table"], ["capture", *below["capture"]], ["energy"], []):
        assert long(short(rules, below) or "–", below) == set(rules)


@pytest.mark.slow
def test_the_tables_do_not_drift():
    command = [sys.executable, "-W", "ignore", "-c", PRINT]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed == (ROOT / PAGE).read_text(encoding="utf-8"), "run: make docs"
