"""What the jobs of a dry run ask a scheduler for."""

import re

from running import Study

HERE = {"corpus", "lock", "table", "figure", "report", "card"}
"""Light rules, which run where Snakemake does; a rule that is none of them says what it needs."""
JOB = re.compile(r"^rule (\w+):\n(?:    input: .*\n)?    output: .*\n(?:    .*\n)*?    resources: (.*)$", re.MULTILINE)


def test_a_job_is_light_or_asks_for_memory_and_time(fresh: Study):
    asked: dict[str, set[str]] = {}
    for rule, resources in JOB.findall(fresh.done("--dry-run")):
        asked.setdefault(rule, set()).update(re.findall(r"(mem_mb|runtime|gpu)=\d", resources))
    assert {rule for rule, names in asked.items() if not names} == HERE
    assert {rule for rule, names in asked.items() if "gpu" in names} == {"capture"}
    assert {rule for rule, names in asked.items() if {"mem_mb", "runtime"} <= names} == asked.keys() - HERE
