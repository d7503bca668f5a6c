"""What a job asks a scheduler for: memory and time of its plan on a slow machine, with room, more at each attempt.

Our choice; nothing here changes a result, and Snakemake does not rerun a job because it asks for something else.
"""

import math
from pathlib import Path

from isotrace.planning.calibration import Calibration
from isotrace.planning.costs import Cost, cost
from isotrace.planning.jobs import Jobs, jobs
from isotrace.planning.work import Work, work_of
from isotrace.sources.series import RESULTS
from isotrace.study import Study

SLOW = Calibration(gflops=30.0, start=5.0, write=50.0, threads=1)
"""A loaded node whose Python lies on a network file system; a job that ends early costs nothing."""
ALIKE = ("energy", "controls", "isotropy", "geometry", "frequency", "attention")
"""Rules whose jobs all ask for what the largest needs, so that they may share a job array."""
LEAST_MB, OWN_MB, ROOM = 1500, 500, 1.5
"""The least a job asks for, what the two Snakemakes around it take, and how far the plan may be off."""
LEAST_MINUTES, LATE = 20, 2
_STEP_MB = 100
_LIKE = {"perceive": "capture", "vectors": "capture"}
"""Rules that the plan has no formula for, and the rule whose memory they need."""


class Requests:
    """Requests of a study's jobs by rule and model; a model without a known size asks for the least.

    Nothing is computed before a job asks: every job of a cluster parses the workflow again.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._jobs: dict[tuple[str, str], Jobs] = {}
        self._works: dict[str, Work] = {}
        self._costs: dict[tuple[str, str], Cost] = {}

    def memory(self, rule: str, model: str, attempt: int) -> int:
        """MB of one job; ``model`` is "" for a job of the whole study, ``attempt`` counts from 1."""
        planned = ROOM * 1000 * self._asked(rule, model).memory + OWN_MB
        return attempt * max(LEAST_MB, _STEP_MB * math.ceil(planned / _STEP_MB))

    def runtime(self, rule: str, model: str, attempt: int) -> int:
        """Minutes of one job."""
        return attempt * max(LEAST_MINUTES, math.ceil(LATE * self._asked(rule, model).seconds / 60))

    def gpus(self) -> int:
        """GPUs of a job that runs a model: one where the config says so. ``auto`` takes what the node offers."""
        return int(self.study.execution.device == "cuda")

    def _asked(self, rule: str, model: str) -> Cost:
        models = list(self.study.models) if rule in ALIKE else [model]
        found = [self._cost(rule, name) for name in models]
        return Cost(max(c.seconds for c in found), max(c.memory for c in found))

    def _cost(self, rule: str, model: str) -> Cost:
        """Kept once the size of the model is known: the config of a fetched one comes during the run."""
        key = (rule, model)
        if key in self._costs:
            return self._costs[key]
        work = self._work(model) if model in self.study.models else None
        found = cost(self.study, self._one(rule, model), work, SLOW)
        if work is None or work.shape is not None or model in self.study.dumped:
            self._costs[key] = found
        return found

    def _work(self, model: str) -> Work:
        """Planned again only where what was missing has come: thousands of jobs ask."""
        known = self._works.get(model)
        if known is None or (known.shape is None and self._listed(model)):
            self._works[model] = work_of(self.study, model, self.study.results)
        return self._works[model]

    def _listed(self, model: str) -> bool:
        """Whether the config that says how large a model is lies here now."""
        shape = self.study.series[model].shape
        return bool(shape) and Path(shape.replace(RESULTS, str(self.study.results))).is_file()

    def _one(self, rule: str, model: str) -> Jobs:
        """The job as the plan counts it; of one that it does not count, a job of one part."""
        if not self._jobs:
            self._jobs = {(one.rule, one.model): one for one in jobs(self.study)}
        found = self._jobs.get((rule, model), Jobs(rule, model, 1))
        return Jobs(_LIKE.get(rule, rule), model, found.n, found.parts)
