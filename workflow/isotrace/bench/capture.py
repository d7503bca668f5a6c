"""Capture, from a model in memory to sealed rows and moments, against bare passes that keep nothing.

Our choice of what counts: what ``capture_stores`` does; loading, the self-check and attention sums are left out.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from isotrace.bench.registry import Measured, Settings, Sizes, bench
from isotrace.bench.timing import emptied, interleaved, median_ratio, rounded

SIZES: Sizes = {
    "layers": 6,
    "width": 384,
    "vocabulary": 4096,
    "length": 256,
    "tokens": 16384,
    "buckets": 4,
    "batch_size": 16,
}
BARE = "forward and autograd.grad at the same sites, nothing kept"


@bench("capture", compared=f"seconds: all rows and their moments, sealed / {BARE}", wanted="at most 1.35", sizes=SIZES)
def capture(settings: Settings) -> Measured:
    """Every position that has a target is kept, at every site."""
    return _measured(settings, rows=settings.sizes["tokens"])


@bench(
    "capture-sampled",
    compared=f"seconds: a quarter of the rows and the moments of those, sealed / {BARE}",
    wanted="at most 1.15",
    sizes=SIZES,
)
def capture_sampled(settings: Settings) -> Measured:
    """As many rows as sampling would keep."""
    return _measured(settings, rows=settings.sizes["tokens"] // 4)


@bench(
    "capture-weights",
    compared=f"seconds: all rows, moments, weight gradients by bucket, sealed / {BARE}, whole weight gradients too",
    wanted="at most 1.35",
    sizes=SIZES,
)
def capture_weights(settings: Settings) -> Measured:
    """The weights are those of every linear map that reads the residual stream."""
    return _measured(settings, rows=settings.sizes["tokens"], weights=True)


def _measured(settings: Settings, *, rows: int, weights: bool = False) -> Measured:
    """The ratio, after one warm run of either side."""
    # Here, so that benches without a model do not wait for torch.
    from isotrace.bench.workload.bare import bare, random_model
    from isotrace.bench.workload.stores import captured, random_passes
    from isotrace.capture.device import repeatable
    from isotrace.capture.maps import Maps, find_maps
    from isotrace.capture.sites import find_sites

    repeatable(settings.threads)
    model, passes = random_model(settings.sizes), random_passes(settings.sizes, rows)
    sites, size = find_sites(model), settings.sizes["batch_size"]
    maps = find_maps(model, sites, [name for name in sites if name.startswith("block.")]) if weights else Maps({}, {})
    matrices = [module.get_parameter("weight") for module in maps.modules.values()]
    with TemporaryDirectory() as folder:

        def ours(_: int) -> None:
            asked = {"batch_size": size, "threads": settings.threads}
            captured(Path(folder), model, sites, maps, passes, moments_tokens="sample", **asked)

        def baseline(_: int) -> None:
            bare(model, sites, passes, batch_size=size, weights=matrices)

        ours(0)
        baseline(0)
        times = interleaved(ours, baseline, settings.pairs, before=lambda: emptied(Path(folder)))
    details = {
        "rows": len(passes.at),
        "seconds": rounded(median(times.ours)),
        "seconds_bare": rounded(median(times.baseline)),
        "device": next(model.parameters()).device.type,
    }
    return Measured(rounded(median_ratio(times.ours, times.baseline)), details)
