"""A dry run as a table; the text is what Snakemake 9.27 prints."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.dryrun import differing, read, table

PARAMS = (
    "Params have changed since last execution: Union of exclusive params before and now across all output: "
    "before: {'code': 'a1', 'draws': 99, 'note': 'x; Y now: z'} now: {'code': 'b2', 'draws': 50, 'seed': [1, 2]} "
)
ABOVE = "Input files updated by another job: "


def job(rule, number, reason, *, inputs="", outputs="", local=True):
    head = f"{'localrule' if local else 'rule'} {rule}:"
    fields = {"input": inputs, "output": outputs or f"out/{rule}{number}", "jobid": number, "reason": reason}
    return ["[Mon Nov 30 21:00:00 2026]", head, *(f"    {k}: {v}" for k, v in fields.items() if v != ""), ""]


def shown(*blocks, folder=Path()):
    lines = ["Building DAG of jobs...", "Job stats:", "job  count", *(line for block in blocks for line in block)]
    return table(read([*lines, "Reasons:", "    (check individual jobs above for details)"]), folder=folder)


def test_a_line_a_rule_in_the_order_of_the_data_with_why():
    found = shown(
        job("table", 3, ABOVE + "out/energy1, out/energy2", inputs="out/energy1, out/energy2"),
        job("energy", 1, PARAMS, local=False),
        job("energy", 2, PARAMS),
        job("all", 4, ABOVE + "out/table3", inputs="out/table3")[:-1],
    )
    assert [line.split(maxsplit=2) for line in found] == [
        ["rule", "jobs", "why"],
        ["energy", "2", "code, draws 99 -> 50, note x; Y now: z -> nothing, seed nothing -> [1, 2]"],
        ["table", "1", "after energy"],
        ["all", "1", "after table"],
        ["total", "4"],
    ]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Missing output files: out/a, out/b; " + ABOVE + "out/x", "output missing"),
        ("Updated input files: in/a", "newer input in/a"),
        ("Updated input files: a, b, c, d", "newer input a, b, c ..."),
        ("Set of input files has changed since last execution", "other input files"),
        ("Code has changed since last execution", "code"),
        ("Forced execution", "forced"),
        ("Incomplete output files: out/a", "half-written output"),
    ],
)
def test_reasons_are_said_in_few_words(reason, said):
    assert shown(job("energy", 1, reason))[1].split(maxsplit=2)[2] == said


def test_reasons_of_some_jobs_have_their_number():
    blocks = [job("energy", i, "Forced execution" if i else "Updated input files: in/a") for i in range(3)]
    assert shown(*blocks)[1].endswith("forced (2); newer input in/a (1)")


def test_params_that_cannot_be_read_are_still_a_reason():
    assert differing("before: <nothing exclusive> now: {'a': 1} ") == "a nothing -> 1"
    assert differing("before: {object} now: {'a': 1}") == "other params"


def test_nothing_to_do():
    lines = ["Building DAG of jobs...", "Nothing to be done (all requested files are present)."]
    assert table(read(lines), folder=Path()) == ["nothing to do"]


def test_rows_that_were_cleaned_are_named(tmp_path):
    moments = tmp_path / "results" / "moments" / "decoder" / "step3.json"
    moments.parent.mkdir(parents=True)
    moments.write_text("{}")
    outputs = ", ".join(f"results/{kind}/decoder/step3.json" for kind in ("cache", "moments", "attention"))
    block = job("capture", 1, "Missing output files: results/cache/decoder/step3.json", outputs=outputs)
    assert "note: cleaned rows of 1 checkpoint (decoder step3)" in shown(block, folder=tmp_path)[-1]
    moments.unlink()
    assert shown(block, folder=tmp_path)[-1].split() == ["total", "1"]


@settings(max_examples=40)
@given(st.lists(st.text()))
def test_no_output_can_break_it(lines):
    shown(job("energy", 1, PARAMS), lines)
