"""What one analysis of one checkpoint reads: its open stores and every tangent basis to compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zarr

from isotrace.bases import moving_basis, read_bases
from isotrace.geometry.bases import Basis
from isotrace.geometry.rows import Bucket
from isotrace.geometry.summed import BucketMoments
from isotrace.readers import model_sites, read_bucket, read_bucket_moments
from isotrace.store import is_tombstone, open_store


@dataclass(frozen=True)
class Analysed:
    """What an analysis of one checkpoint reads: the open stores and every basis to compare."""

    cache: zarr.Group | None
    moments: zarr.Group | None
    bases: list[Basis]
    sites: tuple[str, ...]

    @classmethod
    def open(cls, inputs: Any, spec: dict[str, Any], buckets: Sequence[str]) -> "Analysed":
        """Open the inputs of a rule, checking the buckets it reads; a tombstone opens as nothing."""
        manifest, moments = Path(inputs.cache), Path(inputs.moments)
        if is_tombstone(manifest):
            return cls(None, None, [], ())
        checkpoint = manifest.stem
        bases = [basis for path in inputs.bases for basis in read_bases(Path(path), checkpoint, spec["kinds"])]
        if "moving" in spec["kinds"]:
            bases += [moving_basis(moments, manifest, method, spec) for method in spec["methods"]]
        return cls(open_store(manifest, tuple(buckets)), open_store(moments), bases, model_sites(manifest))

    def tokens(self, bucket: str) -> Bucket | BucketMoments:
        """What energies are made from: every evaluation token where its moments were stored, else the cached rows."""
        assert self.cache is not None
        assert self.moments is not None
        if self.moments.attrs["moments_tokens"] == "all":
            return read_bucket_moments(self.moments, bucket)
        return read_bucket(self.cache, bucket, "eval")


def read_previous(manifests: Sequence[str], bucket: str) -> Bucket | None:
    """The same bucket at the checkpoint before, None for the first checkpoint and after a tombstone."""
    found = [Path(m) for m in manifests if not is_tombstone(Path(m))]
    return read_bucket(open_store(found[0], (bucket,)), bucket, "eval") if found else None
