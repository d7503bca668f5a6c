"""What one analysis of one checkpoint reads: its open stores and every tangent basis to compare."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import zarr

from isotrace.bases import moving_basis, moving_maps, read_bases
from isotrace.geometry.bases import Basis
from isotrace.geometry.rows import Bucket
from isotrace.geometry.summed import BucketMoments
from isotrace.missing import told
from isotrace.readers import missing_of, model_sites, read_bucket, read_bucket_moments
from isotrace.store import is_tombstone, open_store


@dataclass(frozen=True)
class Analysed:
    """What an analysis of one checkpoint reads: the open stores and every basis to compare."""

    cache: zarr.Group | None
    moments: zarr.Group | None
    bases: list[Basis]
    sites: tuple[str, ...]
    missing: dict[str, str] = field(default_factory=dict)

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
        cache = open_store(manifest, tuple(buckets))
        return cls(cache, open_store(moments), bases, model_sites(manifest), missing_of(manifest))

    def tokens(self, bucket: str) -> Bucket | BucketMoments:
        """What energies are made from: every evaluation token where its moments were stored, else the cached rows."""
        assert self.cache is not None
        assert self.moments is not None
        if self.moments.attrs["moments_tokens"] == "all":
            return read_bucket_moments(self.moments, bucket)
        return read_bucket(self.cache, bucket, "eval")

    def told(self, frame: pd.DataFrame, stage: str) -> pd.DataFrame:
        """The table of a stage, with the reason where the store lacks what its rows would have been made of."""
        return told(frame, stage, self.missing) if self.missing else frame

    def with_maps(self, moments: Path, spec: dict[str, Any]) -> list[Basis]:
        """The bases, and the moving ones of what linear maps read, from the manifest of the moments."""
        if self.moments is None or "moving" not in spec["kinds"]:
            return self.bases
        return [*self.bases, *moving_maps(moments, spec["methods"], spec)]


def read_previous(manifests: Sequence[str], bucket: str, cache: zarr.Group) -> tuple[Bucket | None, str]:
    """The same bucket at the checkpoint before, None for the first checkpoint and after a tombstone.

    None too, with the reason, where that checkpoint holds other tokens than ``cache``: dumps may.
    """
    found = [Path(m) for m in manifests if not is_tombstone(Path(m))]
    if not found:
        return None, ""
    root = open_store(found[0], (bucket,))
    if root.attrs["sample_digest"] != cache.attrs["sample_digest"]:
        return None, f"{found[0].stem} holds other rows: nothing says which of them are of the same token"
    return read_bucket(root, bucket, "eval"), ""
