"""How fast this machine is."""

from pathlib import Path

from isotrace.job import job
from isotrace.planning.calibration import calibrate
from isotrace.store import write_json

with job(snakemake) as spec:
    output = Path(snakemake.output.calibration)
    write_json(output, calibrate(spec["threads"], output.parent).as_dict())
