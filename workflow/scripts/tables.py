"""A stage's results of all checkpoints as one table, with the keys of their series."""

from isotrace.checkpoints.lock import findings
from isotrace.gather import WHOLE_SERIES, audit_table, stage_table
from isotrace.job import job
from isotrace.results import read_locks, write_table

with job(snakemake) as spec:
    locks, stage = read_locks(snakemake.input.locks), spec["stage"]
    if stage == "audit":
        frame = audit_table(finding for lock in locks for finding in findings(lock))
    else:
        keys = {name: spec[name] for name in ("study", "seeds", "early", "late")}
        frame = WHOLE_SERIES.get(stage, stage_table)(stage, snakemake.input.results, locks, **keys)
    write_table(snakemake.output, frame, stage)
