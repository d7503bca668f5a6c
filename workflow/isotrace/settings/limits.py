"""Config block for what a study may take; `isotrace plan` warns where it would take more."""

from isotrace.settings.base import Block, key


class Limits(Block):
    """Bounds that `snakemake plan` and `isotrace plan` compare the study with; they stop nothing."""

    disk_gb: float | None = key(
        None, "disk of moments, weights and, unless in a bucket, cached rows; null: no bound", unit="GB", gt=0
    )
    memory_gb: float | None = key(None, "peak memory of a job; null: no bound", unit="GB", gt=0)
    hours: float | None = key(None, "time on the cores of this machine; null: no bound", unit="hours", gt=0)
    files: int | None = key(None, "files below the results folder; null: no bound", unit="files", ge=1)
