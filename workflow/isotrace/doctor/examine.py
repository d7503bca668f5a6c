"""All that the doctor looks at, in order; a study whose config is refused is not planned (our choice)."""

from collections.abc import Callable, Iterator
from pathlib import Path

from isotrace.doctor import environment, scheduling, sizes
from isotrace.doctor.cluster import Ask, ask
from isotrace.doctor.findings import Finding, fail, ok
from isotrace.doctor.hub import hub
from isotrace.doctor.machine import Machine
from isotrace.doctor.places import on_another_disk, places, reach
from isotrace.errors import IsotraceError
from isotrace.plan import plan
from isotrace.planning.calibration import Calibration
from isotrace.study import Study, read

ANY_SPEED = Calibration(gflops=100, start=0.5, write=1000, threads=1)
"""A speed for plans of which only the sizes are read."""


def examine(
    configfile: Path,
    machine_at: Callable[[Path], Machine],
    *,
    profile: Path,
    cores: int | None,
    cuda: Callable[[], bool],
    token: Callable[[], str | None],
    cluster: Ask = ask,
    try_bucket: Callable[[str], None] = reach,
    folder: Path = Path(),
) -> Iterator[Finding]:
    """Every finding on a study in ``folder``.

    ``machine_at`` gives the machine as it is for a results folder, ``cuda`` whether torch sees a GPU, ``token`` the
    hub's, ``cluster`` what SLURM says of itself; ``try_bucket`` raises where rows cannot be kept in a bucket.
    """
    study, refused = _study(configfile)
    results = Path("results") if study is None else study.results
    machine = machine_at(results)
    yield environment.python(machine)
    yield environment.packages(machine, folder / "requirements.lock")
    yield scheduling.snakefile(folder)
    yield from scheduling.profile(machine, profile, cluster)
    yield scheduling.locks(folder)
    yield from environment.folders([*_folders(study), folder / ".snakemake"])
    if study is None:
        yield refused
    else:
        yield ok("config", f"{configfile}: study {study.study}, {len(study.models)} models")
        yield from _fits(study, machine, cores or machine.cores, try_bucket)
        yield from hub(machine, study, token)
        yield device(study, cuda)
    yield from environment.optional(machine)


def _study(configfile: Path) -> tuple[Study | None, Finding]:
    try:
        return read(configfile), ok("config", str(configfile))
    except IsotraceError as error:
        return None, fail("config", f"{configfile}: {error}", "change that key; config/README.md explains it")


def _folders(study: Study | None) -> list[Path]:
    given = {} if study is None else study.pathvars
    return [Path(given.get(name, name)) for name in ("results", "logs", "benchmarks")]


def _fits(study: Study, machine: Machine, cores: int, try_bucket: Callable[[str], None]) -> Iterator[Finding]:
    planned = plan(study, ANY_SPEED, cores=cores, results=study.results)
    yield from sizes.unknown(planned["models"])
    yield from sizes.disk(machine, planned["totals"], on_another_disk(study, planned["models"], machine.folder))
    yield from places(study, planned["totals"], try_bucket)
    yield sizes.memory(machine, planned["totals"], cores)
    yield sizes.threads(machine, study, cores)
    yield from sizes.limits([line for line in planned["warnings"] if not line.startswith("limits.hours")])


def device(study: Study, cuda: Callable[[], bool]) -> Finding:
    """Where capture would run the model."""
    wanted = study.execution.device
    if wanted == "cpu":
        return ok("device", "cpu, as the config says")
    there = cuda()
    if wanted == "cuda" and not there:
        return fail("device", "cuda, but torch sees none here", "use auto or cpu, or install a CUDA build of torch")
    return ok("device", "cuda" if there else "cpu; torch sees no CUDA device")
