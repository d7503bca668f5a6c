"""``isotrace verify``: compare sealed stores with their manifests."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from isotrace.commands.registry import command
from isotrace.study import read

_AGAIN = "to make one again: delete its folder and its manifest, then name the manifest as target of isotrace run"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace verify``."""
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("results")], help="manifests or folders of them")
    parser.add_argument("--configfile", type=Path, help="also say which stores another config or code has made")


@command(
    "verify",
    help="compare sealed stores with their manifests",
    options=add_options,
    examples=("isotrace verify", "isotrace verify results/mine/cache --configfile mine.yaml"),
    codes={1: "a store differs from its manifest, or something of yours to fix; one line says which and what"},
)
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
        print(_AGAIN, file=sys.stderr)
    return 1 if bad else 0
