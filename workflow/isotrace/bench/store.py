"""Writing and reading sealed stores, against the same bytes compressed and hashed into plain files.

Our choice of baseline: what any store of this kind has to do, zstd at its level and SHA-256 once each way.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import zarr
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from isotrace.bench.registry import Measured, Settings, bench
from isotrace.bench.timing import emptied, interleaved, median_ratio, rounded
from isotrace.encoding import Encoding
from isotrace.errors import DataError
from isotrace.grids import CHUNK_BYTES
from isotrace.seeding import generator
from isotrace.shards import LEVEL, RunWriter
from isotrace.store import create, open_store
from isotrace.stored_rows import read_rows

Rows = NDArray[np.float32]
FINGERPRINT = {"params_digest": "", "code_digest": "", "versions": {}}
GROUP, NAME = "b0", "activations"


@bench(
    "store",
    compared="throughput: zstd and SHA-256 into plain files, seconds / a sealed Zarr store, seconds; the lower of two",
    wanted="at least 0.8",
    sizes={"sites": 8, "tokens": 16384, "width": 384, "batch": 4096},
)
def store(settings: Settings) -> Measured:
    """Rows arrive ``batch`` tokens at a time and are read whole, checked against their digests; ratios of both ways."""
    size = settings.sizes
    rows = generator(0, "bench", "store").standard_normal((size["sites"], size["tokens"], size["width"]), np.float32)
    with TemporaryDirectory() as folder, zarr.config.set({"threading.max_workers": settings.threads}):
        sealed, plain = Path(folder) / "sealed.json", Path(folder) / "plain"
        write = interleaved(
            lambda _: _write_sealed(sealed, rows, size["batch"]),
            lambda _: _write_plain(plain, rows),
            settings.pairs,
            before=lambda: emptied(Path(folder)),
        )
        emptied(Path(folder))
        _write_sealed(sealed, rows, size["batch"])
        files = _write_plain(plain, rows)
        if not np.array_equal(_read_sealed(sealed), rows) or not np.array_equal(_read_plain(files, rows.shape), rows):
            raise DataError("bench store: what was read is not what was written")
        read = interleaved(lambda _: _read_sealed(sealed), lambda _: _read_plain(files, rows.shape), settings.pairs)
    ratios = {
        "write_ratio": median_ratio(write.baseline, write.ours),
        "read_ratio": median_ratio(read.baseline, read.ours),
    }
    speeds = {
        "write_megabytes_a_second": rows.nbytes / 1e6 / float(np.median(write.ours)),
        "read_megabytes_a_second": rows.nbytes / 1e6 / float(np.median(read.ours)),
    }
    details = {name: rounded(value) for name, value in {**ratios, **speeds}.items()}
    return Measured(rounded(min(ratios.values())), details)


def _write_sealed(manifest: Path, rows: Rows, batch: int) -> None:
    with create(manifest, {}, FINGERPRINT) as root:
        shape = (rows.shape[0], rows.shape[1], rows.shape[2])
        writer = RunWriter(root.create_group(GROUP), NAME, shape, encoding=Encoding())
        for start in range(0, rows.shape[1], batch):
            writer.append(rows[:, start : start + batch])
        writer.close()


def _read_sealed(manifest: Path) -> Rows:
    return read_rows(open_store(manifest)[GROUP], NAME)


@dataclass(frozen=True)
class PlainFile:
    """Compressed pieces of one site, one after the other: their lengths in bytes, and the digest of all."""

    path: Path
    lengths: tuple[int, ...]
    sha256: str


def _write_plain(folder: Path, rows: Rows) -> list[PlainFile]:
    """One file a site, in pieces as large as a chunk of ours."""
    zstd, files = Zstd(level=LEVEL), []
    folder.mkdir()
    for i, site in enumerate(rows):
        path, lengths, sha256 = folder / str(i), [], hashlib.sha256()
        with path.open("wb") as stream:
            for piece in _pieces(site):
                content = zstd.encode(piece)
                sha256.update(content)
                stream.write(content)
                lengths.append(len(content))
        files.append(PlainFile(path, tuple(lengths), sha256.hexdigest()))
    return files


def _read_plain(files: list[PlainFile], shape: tuple[int, ...]) -> Rows:
    zstd, rows = Zstd(level=LEVEL), np.empty(shape, np.float32)
    for site, file in zip(rows, files, strict=True):
        sha256 = hashlib.sha256()
        with file.path.open("rb") as stream:
            for piece, length in zip(_pieces(site), file.lengths, strict=True):
                content = stream.read(length)
                sha256.update(content)
                zstd.decode(content, out=piece)
        if sha256.hexdigest() != file.sha256:
            raise DataError(f"{file.path} changed")
    return rows


def _pieces(site: Rows) -> Iterator[Rows]:
    """Views of runs of rows (n, d) of at most ``CHUNK_BYTES``."""
    run = max(1, CHUNK_BYTES // site[0].nbytes)
    for start in range(0, len(site), run):
        yield site[start : start + run]
