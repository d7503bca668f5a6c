"""The command ``isotrace``: run a study, say what came out, verify stores, measure what it costs.

Exit codes: 0 done, 1 something of the user's to fix (one line says what) or, of check, an alarm, 2 wrong usage,
130 interrupted.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from isotrace.errors import ConfigError, DataError, IsotraceError
from isotrace.powerview import add_options, print_power
from isotrace.study import read, validated
from isotrace.yamlfile import read_mapping


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a mistake of the user's is one line on stderr and exit code 1."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments[:1] == ["run"]:
            return _run(arguments[1:])
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
    except IsotraceError as error:
        print(f"isotrace: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("isotrace: interrupted", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="isotrace", description=__doc__)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("run", help="run Snakemake on a config, one line a stage; its options are passed through")
    headline = commands.add_parser("headline", help="the main numbers of a finished study in plain words")
    headline.add_argument("--configfile", type=Path, default=Path("config/demo.yaml"), help="the study's config")
    headline.set_defaults(command=_headline)
    checked = commands.add_parser("check", help="the card's rows; exit code 1 where one is at alarm, for a CI")
    checked.add_argument("--configfile", type=Path, default=Path("config/demo.yaml"), help="the study's config")
    checked.add_argument("--model", help="one model, or group of runs; all unless given")
    checked.set_defaults(command=_check)
    audit = commands.add_parser("audit", help="every checkpoint of a study as its audit found it")
    audit.add_argument("--configfile", type=Path, default=Path("config/demo.yaml"), help="the study's config")
    audit.set_defaults(command=_audit)
    verify = commands.add_parser("verify", help="compare sealed stores with their manifests")
    verify.add_argument("paths", nargs="*", type=Path, default=[Path("results")], help="manifests or folders of them")
    verify.add_argument("--configfile", type=Path, help="also say which stores another config or code has made")
    verify.set_defaults(command=_verify)
    resolve = commands.add_parser("resolve", help="ask the hub for a series' commits and hashes, once")
    resolve.add_argument("model", help="name of a model of the config whose source is hub")
    resolve.add_argument("--configfile", type=Path, required=True, help="the study's config")
    resolve.set_defaults(command=_resolve)
    locked = commands.add_parser("lock", help="keep a finished study's digests, which `locked: true` then demands")
    locked.add_argument("--configfile", type=Path, required=True, help="the study's config")
    locked.set_defaults(command=_lock)
    plan = commands.add_parser("plan", help="sizes, jobs, time and memory of a study, before anything runs")
    plan.add_argument("--configfile", type=Path, default=Path("config/demo.yaml"), help="the study's config")
    plan.add_argument("--cores", type=int, help="cores to plan for; those of this machine unless given")
    plan.set_defaults(command=_plan)
    watch = commands.add_parser("watch", help="analyse a running training's checkpoints as they appear")
    watch.add_argument("--configfile", type=Path, required=True, help="the study's config, with total_steps")
    watch.add_argument("--cores", default="all", help="how many cores jobs may use (default all)")
    watch.add_argument("--every", type=float, default=60, help="seconds between looks (default 60)")
    watch.add_argument("--until", type=int, help="stop once a checkpoint at this step was analysed")
    watch.set_defaults(command=_watch)
    power = commands.add_parser("power", help="how many runs, checkpoints and tokens an effect needs, by simulation")
    add_options(power)
    power.set_defaults(command=_power)
    bench = commands.add_parser("bench", help="measure one thing beside its baseline, as one line of JSON")
    bench.add_argument("name", nargs="?", help="which; without it they are listed")
    bench.add_argument(
        "--size", nargs="+", default=[], metavar="NAME=N", help="sizes to use instead of the bench's own"
    )
    bench.add_argument("--pairs", type=int, default=5, help="runs of either side, in turns (default 5)")
    bench.add_argument("--threads", type=int, default=1, help="threads of every library (default 1)")
    bench.set_defaults(command=_bench)
    return parser


def _run(arguments: Sequence[str]) -> int:
    from isotrace.run import run

    for config in _configs(arguments):
        read(config)  # a mistake in the config is told before Snakemake starts
    return run(arguments)


def _watch(options: argparse.Namespace) -> int:
    from isotrace.run import run
    from isotrace.watch import watch

    return watch(
        validated(read_mapping(options.configfile)),
        lambda: read(options.configfile),
        lambda: run(["--configfile", str(options.configfile), "--cores", options.cores]),
        every=options.every,
        until=options.until,
        tell=lambda line: print(line, flush=True),
    )


def _configs(arguments: Sequence[str]) -> list[Path]:
    if list(arguments).count("--configfile") != 1:
        return []
    after = list(arguments)[list(arguments).index("--configfile") + 1 :]
    given = [a for i, a in enumerate(after) if not any(b.startswith("-") for b in after[: i + 1])]
    return [Path(given[0])] if len(given) == 1 else []  # several files are merged first, by Snakemake


def _headline(options: argparse.Namespace) -> int:
    from isotrace.finished import finished
    from isotrace.headline import headline
    from isotrace.notes import audit_notes

    study = read(options.configfile)
    names = ("energy", "isotropy", "geometry", "controls", "claims")
    tables, locks = finished(study, names, options.configfile)
    lines = headline(tables, rank=study.dynamics.rank, method=study.dynamics.method)
    print("\n".join([*lines, *audit_notes(locks, study)]))
    results = study.results
    print(f"tables: {results}/tables   figures: {results}/figures   all on one page: {results}/report.html")
    return 0


def _check(options: argparse.Namespace) -> int:
    from isotrace.checkview import check

    return check(read(options.configfile), options.configfile, options.model)


def _audit(options: argparse.Namespace) -> int:
    from isotrace.auditview import print_audit
    from isotrace.results import read_locks

    study = read(options.configfile)
    locks = [study.results / "checkpoints" / f"{model}.lock.json" for model in study.models]
    for path in locks:
        if not path.is_file():
            raise DataError(f"{path}: not there; run the audit: isotrace run --configfile {options.configfile} audit")
    print_audit(read_locks(map(str, locks)))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from isotrace.store import manifests_below
    from isotrace.verify import findings

    study = None if options.configfile is None else read(options.configfile)
    results = Path("results") if study is None else study.results
    manifests = sorted({m for path in options.paths for m in manifests_below(path)})
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda m: findings(m, study, results), manifests))
    for manifest, wrong in zip(manifests, found, strict=True):
        for line in wrong:
            print(f"{manifest.with_suffix('')}: {line}")
    bad = sum(map(bool, found))
    print(f"{len(manifests)} stores, {bad} differ from their manifest")
    if bad:
        again = (
            "to make one again: delete its folder and its manifest, then name the manifest as target of isotrace run"
        )
        print(again, file=sys.stderr)
    return 1 if bad else 0


def _resolve(options: argparse.Namespace) -> int:
    from isotrace.hub.write import write_series

    print(write_series(options.model, validated(read_mapping(options.configfile))))
    return 0


def _lock(options: argparse.Namespace) -> int:
    from isotrace.checkpoints.locked import keep_locks

    study = validated(read_mapping(options.configfile))
    for path in keep_locks(list(study.models), study.results):
        print(f"{path}: written; commit it")
    return 0


def _plan(options: argparse.Namespace) -> int:
    from isotrace.planning.show import available_cores, show

    if options.cores is not None and options.cores < 1:
        raise ConfigError(f"plan --cores: {options.cores} is not 1 or more")
    study = read(options.configfile)
    print(show(study, study.results, cores=options.cores or available_cores()))
    return 0


def _power(options: argparse.Namespace) -> int:
    print_power(options)
    return 0


def _bench(options: argparse.Namespace) -> int:
    from isotrace.bench.registry import benches, measured

    if options.name is None:
        for found in benches().values():
            sizes = " ".join(f"{key}={value}" for key, value in found.sizes.items())
            print(f"{found.name}: {found.compared}; wanted {found.wanted} (--size {sizes})")
        return 0
    line = measured(options.name, sizes=_sizes(options.size), threads=options.threads, pairs=options.pairs)
    print(json.dumps(line))
    return 0


def _sizes(given: Sequence[str]) -> dict[str, int]:
    for text in given:
        if not text.partition("=")[2].isdecimal():
            raise ConfigError(f"bench --size: {text!r} is not NAME=N with N a whole number")
    return {name: int(value) for name, _, value in (text.partition("=") for text in given)}
