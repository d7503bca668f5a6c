"""Reading Snakemake's output: stages, failures, retries, time left; the text is what Snakemake 9.27 prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrace.progress import Progress, clock, marked

TABLE = """\
Job stats:
job        count
-------  -------
train          1
energy         4
all            1
total          6
""".splitlines()


def started(rule, jobid, wildcards="model=decoder"):
    return [f"localrule {rule}:", f"    output: out/{jobid}", f"    jobid: {jobid}", f"    wildcards: {wildcards}"]


def feed(progress, lines, now=0.0):
    return [text for line in lines for text in progress.read(line, now=now)]


def test_a_stage_is_told_once_when_its_last_job_ends():
    progress = Progress(cores=1)
    assert feed(progress, [*TABLE, *started("train", 1)]) == []
    assert progress.total == 6
    (line,) = feed(progress, ["Finished jobid: 1 (Rule: train)", "1 of 6 steps (17%) done"], now=65.0)
    assert line.split() == ["train", "1/1", "done", "in", "1", "min", "05", "s", "total", "1/6"]
    feed(progress, started("energy", 2), now=65.0)
    assert feed(progress, ["Finished jobid: 2 (Rule: energy)"], now=67.0) == []
    assert progress.status(now=67.0) == ""
    feed(progress, started("energy", 3), now=67.0)
    assert progress.status(now=68.0).startswith("energy 1/4 ... 1 min 08 s, total 2/6")


def test_time_left_is_the_mean_of_each_rule_and_the_median_where_unknown():
    progress = Progress(cores=1)
    feed(progress, [*TABLE, *started("train", 1)])
    feed(progress, ["Finished jobid: 1 (Rule: train)"], now=100.0)
    assert progress.left(now=100.0) is None
    feed(progress, started("energy", 2), now=100.0)
    feed(progress, ["Finished jobid: 2 (Rule: energy)"], now=102.0)
    assert progress.left(now=102.0) == pytest.approx(3 * 2 + 51)  # all: the median of 100 and 2


ERROR = [
    "Error in rule energy:", "    message: None", "    jobid: 2", "    output: out/a.parquet, out/b.parquet",
    "    log: {log} (check log file(s) for error details)", "    shell:",
]  # fmt: skip


def test_a_failure_keeps_what_is_needed_to_explain_and_repeat_it(tmp_path):
    log = tmp_path / "energy.log"
    log.write_text("Traceback\n  x\nisotrace: error: bucket b3 has 12 rows\n")
    progress = Progress(cores=1)
    feed(progress, [*TABLE, *started("energy", 2, "model=decoder, bucket=b3")])
    feed(progress, [line.format(log=log) for line in ERROR])
    (failure,) = progress.failures
    assert (failure.rule, failure.wildcards) == ("energy", "model=decoder, bucket=b3")
    assert failure.outputs == ["out/a.parquet", "out/b.parquet"]
    assert failure.reason() == ["isotrace: error: bucket b3 has 12 rows"]
    log.write_text("\n".join(f"line {i}" for i in range(30)))
    assert failure.reason()[-1] == "line 29"
    log.unlink()
    assert failure.reason() == []


def test_a_job_that_succeeds_when_tried_again_is_no_failure():
    progress = Progress(cores=1)
    feed(progress, [*TABLE, *started("energy", 2), *ERROR, *started("energy", 2), "Finished jobid: 2 (Rule: energy)"])
    assert progress.failures == []


def test_nothing_to_be_done_and_errors_before_any_job():
    progress = Progress(cores=1)
    feed(progress, ["Building DAG of jobs...", "Nothing to be done (all requested files are present and up to date)."])
    assert progress.nothing
    lines = ["Platform: x", "Building DAG of jobs...", "MissingRuleException:", "No rule to produce nothere"]
    assert progress.complaints(lines) == ["MissingRuleException:", "No rule to produce nothere"]
    assert progress.complaints([*lines, "ConfigError: isotrace: error: rank: 900"]) == ["isotrace: error: rank: 900"]


def test_marked_lines_come_once():
    assert marked(["x isotrace: error: a", "isotrace: error: a", "b"]) == ["isotrace: error: a"]


@given(st.text(), st.floats(0, 1e6))
def test_no_line_can_break_it(line, now):
    progress = Progress(cores=2)
    feed(progress, [*TABLE, *started("energy", 2), "Error in rule x:", line, f"    jobid: {line}", line], now=now)
    progress.status(now=now)


def test_clock():
    assert [clock(s) for s in (3.6, 60, 185, 7800)] == ["4 s", "1 min 00 s", "3 min 05 s", "2 h 10 min"]
