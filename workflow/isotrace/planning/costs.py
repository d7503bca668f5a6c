"""Seconds and memory of each rule's jobs: what was measured for the demo, scaled by size and by this machine's speed.

Measured on two cores of an EPYC: 100 GFLOP/s of float32 products a thread, 0.5 s to start a process that imports
pandas. Seconds here are of one core; a formula says what they grow with, not the last ten per cent.
"""

from dataclasses import dataclass

from isotrace.planning.calibration import Calibration
from isotrace.planning.jobs import Jobs
from isotrace.planning.shapes import Shape
from isotrace.planning.work import Work
from isotrace.study import Study

_GFLOPS, _START, _WIDTH, _ROWS, _DRAWS = 100.0, 0.5, 128, 1152, 999
"""The machine and the sizes that the numbers below were measured with: rows a bucket, null draws."""

_OVERHEAD = 1.3
"""Starts that Snakemake adds to a job: it parses the workflow again for each."""
_STARTS = {
    "corpus": 6.0,
    "tokenizer": 3.6,
    "train": 8.2,
    "initialise": 8.2,
    "dequantise": 8.2,
    "tokens": 8.5,
    "sample": 0.8,
    "audit": 8.2,
    "capture": 8.2,
    "untrained": 8.2,
    "lock": 0.6,
    "table": 2.7,
    "dynamics": 4.5,
    "claims": 3.0,
    "figure": 4.5,
    "report": 8.0,
    "card": 1.5,
}
"""Starts that a job's own imports and fixed work take, 1 unless named; 8 are the import of torch and transformers."""
_TWONN = 6.0
"""Starts that the import of scikit-dimension takes."""
_TRAINED, _CAPTURED = 0.7, 0.7
"""Share of the speed of square products that a training step and a captured pass reach."""
_ENCODED = 1e8
"""Bytes of rows a second that are compressed and hashed."""
_FILE = 0.005
"""Seconds a file of a store."""
_DIGESTED = 3e8
"""Bytes of weights a second that an audit reads, hashes and digests."""
_ENERGY, _CONTROLS, _ISOTROPY, _GEOMETRY = 0.0011, 0.0018, 0.01, 0.1
"""Seconds a bucket and site; of energy, controls and isotropy also a basis and component of its ranks."""
_OVERLAPS = 0.2
"""Seconds a site and basis: neighbourhoods, and fits by bucket and half."""
_SITE, _SPECTRUM = 0.012, 0.001
"""Seconds a bucket and site: intervals, and the eigenvalues of two second moments, which grow as the width cubed."""

_BASE = dict.fromkeys(("train", "capture", "untrained"), 0.42) | {"audit": 0.4, "tokens": 0.47}
_BASE |= dict.fromkeys(("initialise", "dequantise"), 0.4)
_PLAIN, _ANALYSIS = 0.2, 0.24
"""GB of a process with its imports: one that loads torch, any other, one that analyses rows."""
_KEPT = 34
"""Float32 numbers of width d that a block keeps a token between forward and backward."""
_LOGITS = 2**26
"""Bytes of logits that capture computes at once."""
_DEVICE = 1e9


@dataclass(frozen=True)
class Cost:
    """Seconds of one core that one job takes, and its peak memory in GB."""

    seconds: float
    memory: float


def cost(study: Study, jobs: Jobs, work: Work | None, speed: Calibration) -> Cost:
    """What each of ``jobs`` takes; ``work`` is its model's, None for a job of the whole study or of unknown size."""
    starts = _OVERHEAD + _STARTS.get(jobs.rule, 1.0)
    if jobs.rule == "geometry" and "twonn" in study.geometry.metrics:
        starts += _TWONN
    seconds = starts * speed.start
    if work is None or work.shape is None or work.store is None:
        return Cost(seconds, _BASE.get(jobs.rule, _PLAIN))
    return Cost(seconds + _seconds(study, jobs, work, speed), _memory(study, jobs, work, work.shape))


def _seconds(study: Study, jobs: Jobs, work: Work, speed: Calibration) -> float:
    """Beyond starting: operations, bytes and files."""
    assert work.shape is not None
    assert work.store is not None
    slower = _GFLOPS / (speed.gflops / speed.threads)
    weights = 4 * work.shape.parameters
    if jobs.rule == "train":
        threads = study.execution.train_threads
        return _training_flops(study, work, work.shape) * slower / (_TRAINED * 1e9 * _GFLOPS * threads)
    if jobs.rule in ("audit", "initialise", "dequantise"):
        return jobs.parts * weights / _DIGESTED
    if jobs.rule == "capture":
        run = 3 * work.shape.flops(work.passes * work.length, work.length)  # forward, back to the sites, attention
        written = (work.cache_bytes + work.moments_bytes) / work.checkpoints
        writing = written / (1e6 * speed.write) + written / _ENCODED * slower + _FILE * work.store.files
        return run / (_CAPTURED * 1e9 * speed.gflops) + writing + weights / _DIGESTED
    if jobs.rule == "untrained":
        run = work.shape.flops(work.passes * work.length, work.length) / (_CAPTURED * 1e9 * speed.gflops)
        each = len(work.store.rows) * work.store.sites * _GEOMETRY * slower  # a third of what the cached rows take
        return len(study.untrained.seeds) * (run + each / 3 + weights / _DIGESTED)
    return slower * _analysis(study, jobs, work.shape.width, work)


def _training_flops(study: Study, work: Work, shape: Shape) -> float:
    """Three forward passes a step: one forward, two back."""
    source = study.models[work.model].source
    batch = int(getattr(source, "batch_size", 0))
    steps = study.series[work.model].found[-1].step
    return 3 * steps * shape.flops(batch * work.length, work.length)


def _analysis(study: Study, jobs: Jobs, d: int, work: Work) -> float:
    """Seconds on the machine of reference; exponents of the width fit what 128, 768 and 2048 took."""
    assert work.store is not None
    wide, sites, bases = d / _WIDTH, work.store.sites, study.bases
    fitted = len(bases.methods) * len(bases.kinds)
    if jobs.rule == "energy":
        draws = study.energy.draws
        drawn = (draws.complement + draws.ambient + draws.variance_weighted) / (2.2 * _DRAWS)
        each = (fitted + len(bases.controls)) * sum(bases.ranks) * _ENERGY * (0.3 + 0.7 * drawn)
        return jobs.parts * sites * (_SITE * wide + _SPECTRUM * wide**3 + each * float(wide**1.3))
    if jobs.rule == "controls":
        drawn = study.energy.draws.variance_weighted / 199
        each = (fitted + len(bases.controls)) * sum(bases.ranks) * _CONTROLS * (0.5 + 0.5 * drawn)
        return jobs.parts * sites * (2 * _SITE * wide + each * float(wide**1.3))
    if jobs.rule == "isotropy":
        drawn = (study.isotropy.draws / _DRAWS + study.isotropy.draws_corrected / 99) / 2
        each = fitted * sum(study.isotropy.ranks) * _ISOTROPY * (0.2 + 0.8 * drawn)
        return jobs.parts * sites * (_SPECTRUM * wide**3 + each * float(wide**1.25))
    if jobs.rule == "geometry":
        rows = work.rows / len(work.store.rows) / _ROWS
        return jobs.parts * sites * _GEOMETRY * rows * wide**2
    if jobs.rule == "subspaces":
        return sites * (len(bases.methods) + len(bases.controls)) * _OVERLAPS * float(wide**1.5)
    if jobs.rule in ("bases", "moving"):
        together = work.checkpoints if jobs.rule == "moving" else 1
        return together * sites * 2e-3 * wide**3
    return 0.0


def _memory(study: Study, jobs: Jobs, work: Work, shape: Shape) -> float:
    """Peak of one job in GB."""
    assert work.store is not None
    d, weights = shape.width, 4 * shape.parameters
    base = _BASE.get(jobs.rule, _PLAIN)
    if jobs.rule == "train":
        batch = int(getattr(study.models[work.model].source, "batch_size", 0)) * work.length
        logits, kept = 16 * batch * shape.vocabulary, 4 * batch * shape.layers * _KEPT * d
        return base + (4 * weights + logits + kept) / _DEVICE
    if jobs.rule == "capture":
        batch = study.capture.batch_size * work.length
        kept = 4 * batch * shape.layers * _KEPT * d
        attention = 32 * study.capture.batch_size * shape.heads * work.length**2
        moments = work.moments_bytes / work.checkpoints / len(work.store.rows)
        return base + (2 * weights + 2 * _LOGITS + kept + attention + 2 * moments) / _DEVICE
    if jobs.rule in ("audit", "initialise", "dequantise", "untrained"):
        kept = work.rows * d * work.store.sites * 8 if jobs.rule == "untrained" else 0
        return base + (2 * weights + kept) / _DEVICE
    if jobs.rule in ("energy", "controls", "isotropy", "geometry", "bases", "moving", "subspaces"):
        rows = work.rows / len(work.store.rows)
        return _ANALYSIS + (400 * d * d + 48 * rows * d) / _DEVICE
    return base
