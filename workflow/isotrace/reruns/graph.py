"""The jobs of a config as Snakemake sees them: of each file the rule, its params and its inputs, without running any.

In this process, because a table of all keys needs some two hundred graphs and a process takes seconds to start.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from logging import ERROR
from pathlib import Path
from typing import Any

import yaml

from isotrace.input_params import ROOT

ALIASES = {"prefetch_and_clean": "prefetch"}
"""Names under which a rule is kept a second time."""


@dataclass(frozen=True)
class Job:
    """One job: its rule, the repr of its params (by which Snakemake compares them), what it reads and writes."""

    rule: str
    params: str
    inputs: frozenset[str]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """All jobs of a config that write something; ``planned`` are those that would run in the folder as it is."""

    jobs: tuple[Job, ...]
    planned: tuple[Job, ...]

    @property
    def by_file(self) -> dict[str, Job]:
        """The job that writes each file."""
        return {file: job for job in self.jobs for file in job.outputs}


def graph(raw: Mapping[str, Any], folder: Path, *, snakefile: Path = ROOT / "Snakefile") -> Graph:
    """The jobs of a config in its working folder, which is left as it is but for Snakemake's own ``.snakemake``.

    Raises RuntimeError, with what was said, for a config that is refused.
    """
    with tempfile.TemporaryDirectory() as elsewhere:
        config = Path(elsewhere) / "config.yaml"
        config.write_text(yaml.safe_dump(dict(raw), sort_keys=False), encoding="utf-8")
        return _graph(config, folder, snakefile)


def _graph(config: Path, folder: Path, snakefile: Path) -> Graph:
    with _working(), _dag(config, folder, snakefile) as dag:
        jobs = {job: _seen(job) for job in dag.jobs if job.output}
        planned = tuple(found for job, found in jobs.items() if dag.needrun(job))
    return Graph(tuple(sorted(jobs.values(), key=_order)), tuple(sorted(planned, key=_order)))


def _order(job: Job) -> tuple[str, tuple[str, ...]]:
    return job.rule, job.outputs


def _seen(job: Any) -> Job:
    params = repr(sorted(map(repr, job.params)))
    return Job(named(job.rule.name), params, frozenset(map(str, job.input)), tuple(map(str, job.output)))


def named(rule: str) -> str:
    """The rule whose work it is: where jobs are batched, some rules stand under a second name."""
    if rule.startswith("audit_") and rule != "audit_vectors":
        return "audit_checkpoint"
    return ALIASES.get(rule, rule.removesuffix("_all"))


@contextmanager
def _working() -> Iterator[None]:
    """Come back to the present folder."""
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _dag(config: Path, folder: Path, snakefile: Path) -> Iterator[Any]:
    """Snakemake's graph after a dry run that prints nothing."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness, RerunTrigger
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

    quiet = {Quietness.RULES, Quietness.PROGRESS}
    triggers = frozenset(RerunTrigger.all()) - {RerunTrigger.CODE}  # as profiles/default leaves it out
    with SnakemakeApi(OutputSettings(dryrun=True, quiet=quiet, log_level_override=ERROR)) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[config]),
            snakefile=snakefile,
            workdir=folder,
        )
        try:
            workflow.dag(DAGSettings(rerun_triggers=triggers)).execute_workflow(executor="dryrun")
        except SystemExit as refusal:
            raise RuntimeError(str(refusal.code)) from None
        # The graph has no public door; nothing in it is changed.
        yield workflow._workflow.dag
