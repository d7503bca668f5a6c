"""``isotrace power``: designs and what they would see, as tables and one sentence (our choice)."""

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from isotrace.commands.registry import command
from isotrace.errors import ConfigError, DataError

if TYPE_CHECKING:
    from isotrace.dynamics.power import Power
    from isotrace.dynamics.simulate import Variation

TESTS = ("early_late", "trend", "ordered_buckets")
TAILS = (0.001, 0.01, 0.03)


def _whole(name: str, least: int) -> Callable[[str], list[int]]:
    """Reader of a list such as 5,6,8, sorted, each number once."""

    def read(text: str) -> list[int]:
        parts = text.split(",")
        if not all(p.isdecimal() and int(p) >= least for p in parts):
            raise ConfigError(f"power --{name}: {text!r} is not whole numbers of {least} or more, such as 5,6,8")
        return sorted(set(map(int, parts)))

    return read


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace power``."""
    add = parser.add_argument
    add("--effect", type=float, default=0.5, help="natural log of early over late, or of frequent over rare bucket")
    add("--test", choices=TESTS, default="early_late", help="test across runs (default early_late)")
    add("--runs", type=_whole("runs", 2), default=[5, 6, 8, 10, 12, 16], help="numbers of runs, such as 5,6,8")
    add("--checkpoints", type=_whole("checkpoints", 3), default=[10], help="checkpoints, evenly over training")
    add("--sites", type=_whole("sites", 1), default=[6], help="sites that a run is the mean of")
    add("--buckets", type=_whole("buckets", 1), default=[4], help="frequency buckets")
    add("--tokens", type=_whole("tokens", 2), default=[640], help="sampled tokens a bucket")
    add("--draws", type=_whole("draws", 1), default=[20, 99, 999], help="null subspaces of energy and removal")
    add("--results", type=Path, help="results folder of a finished study, to read the variation from")
    add("--rank", type=int, default=8, help="rank of the energies read there (default 8)")
    add("--method", default="pca", help="method of the bases of the energies read there (default pca)")
    add("--alpha", type=float, default=0.05, help="level of a test (default 0.05)")
    add("--repetitions", type=int, default=200, help="simulated studies a design (default 200)")
    add("--seed", type=int, default=0, help="seed of the simulation (default 0)")


def _check(options: argparse.Namespace) -> None:
    if not 0 < options.alpha < 1:
        raise ConfigError(f"power --alpha: {options.alpha} is not between 0 and 1")
    if options.repetitions < 1:
        raise ConfigError(f"power --repetitions: {options.repetitions} is not 1 or more")
    if options.test == "ordered_buckets" and min(options.buckets) < 3:
        raise ConfigError(f"power --buckets: {min(options.buckets)}; an order needs three buckets")


def _variation(options: argparse.Namespace) -> tuple["Variation", str]:
    from isotrace.dynamics.components import components
    from isotrace.dynamics.simulate import Variation
    from isotrace.tables import read

    if options.results is None:
        return Variation(), "of the demo, between runs supposed (no --results given)"
    path = options.results / "tables" / "energy.parquet"
    if not path.is_file():
        raise DataError(f"{path}: not there; power --results takes the results folder of a finished study")
    found, notes = components(read(path), rank=options.rank, method=options.method, confidence=0.95)
    return found, "; ".join([f"of {options.results}", *notes])


def _designs(options: argparse.Namespace, variation: "Variation") -> list["Power"]:
    from isotrace.dynamics.power import power
    from isotrace.dynamics.simulate import Design

    asked = product(options.runs, options.checkpoints, options.sites, options.buckets, options.tokens)
    return [
        power(
            Design(runs=r, checkpoints=c, sites=s, buckets=b, tokens=t), variation, options.effect, test=options.test,
            alpha=options.alpha, repetitions=options.repetitions, seed=options.seed,
        )
        for r, c, s, b, t in asked
    ]  # fmt: skip


def conclusion(found: Sequence["Power"]) -> str:
    """One sentence: the smallest of the designs whose power is enough."""
    from isotrace.dynamics.power import ENOUGH, smallest

    best = smallest(found)
    if best is None:
        return f"None of these designs has power {ENOUGH} or more; the best has {max(p.power for p in found):.2f}."
    d = best.design
    return (
        f"Smallest design with power {ENOUGH} or more: {d.runs} runs of {d.checkpoints} checkpoints, {d.sites} sites, "
        f"{d.buckets} buckets and {d.tokens} tokens a bucket (power {best.power:.2f})."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join("  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in (head, *rows))


def _p(value: float) -> str:
    return "none" if value != value else f"{value:.2g}"


def _line(found: "Power") -> list[str]:
    d = found.design
    sizes = [str(n) for n in (d.runs, d.checkpoints, d.sites, d.buckets, d.tokens)]
    return [*sizes, _p(found.p_min), f"{found.power:.2f}", f"{found.error:.2f}"]


@command(
    "power",
    help="how many runs, checkpoints and tokens an effect needs, by simulation",
    options=add_options,
    examples=(
        "isotrace power --effect 0.5 --runs 6,8,12",
        "isotrace power --effect 0.3 --test trend --checkpoints 10,20 --results results/mine",
    ),
)
def _power(options: argparse.Namespace) -> int:
    from isotrace.dynamics.power import power_of_draws

    _check(options)
    variation, source = _variation(options)
    found = _designs(options, variation)
    print(f"Power of {options.test} across runs for an effect of {options.effect:g} at p <= {options.alpha:g}")
    print(
        f"standard deviations ({source}): between runs {variation.between_runs:.2f}, within a run "
        f"{variation.within_run:.2f}, of a cell {variation.cells:.2f}, both with autocorrelation "
        f"{variation.autocorrelation:.2f}; sampling {variation.sampling:.3f}"
    )
    head = ("runs", "checkpoints", "sites", "buckets", "tokens", "smallest p", "power", "se")
    print(_table(head, [_line(p) for p in found]))
    print(conclusion(found))
    print("\nEnergy and removal: power by number of null subspaces drawn and the share of all that reach the basis")
    shares = [f"share {t:g}" for t in TAILS]
    rows = [
        [str(b), _p(1 / (b + 1)), *(f"{power_of_draws(b, t, alpha=options.alpha):.2f}" for t in TAILS)]
        for b in options.draws
    ]
    print(_table(("draws", "smallest p", *shares), rows))
    return 0
