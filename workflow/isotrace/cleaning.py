"""Removing row stores: their files, wherever they lie, then their manifests; moments are left alone (our choice)."""

import shutil
from pathlib import Path

from isotrace.errors import DataError
from isotrace.storage.bucket import Bucket
from isotrace.storage.home import known_home
from isotrace.store import read_manifest


def clean_cache(cache: Path, rows_at: str | None = None) -> None:
    """Remove ``results/cache`` and the objects that this results folder has in buckets, the objects first.

    rows_at: ``s3://BUCKET/PREFIX`` of the present config, where a killed upload may have left some.
    `DataError` where a bucket refuses; the manifests are still there then.
    """
    home = known_home(cache)
    if home is not None:
        for place in sorted({*([rows_at] if rows_at else []), *_places(cache, home)}):
            mine = Bucket(f"{place}/{home}")
            mine.remove(mine.sizes())
    if cache.exists():
        shutil.rmtree(cache)


def _places(cache: Path, home: str) -> set[str]:
    """Every ``s3://BUCKET/PREFIX`` at which manifests name objects of this very folder, not of one it is a copy of."""
    found = set()
    for manifest in cache.glob("*/*.json"):
        try:
            location = str(read_manifest(manifest).get("location", ""))
        except DataError:
            continue
        place, mine, _ = location.partition(f"/{home}/")
        found |= {place} if mine else set()
    return found
