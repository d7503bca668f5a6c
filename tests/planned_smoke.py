"""The plan of the smoke study on a machine of known speed, and a series on the hub for it."""

import json

from configs import ROOT, smoke
from isotrace.plan import plan
from isotrace.planning.calibration import Calibration
from isotrace.study import load

REFERENCE = Calibration(gflops=100, start=0.5, write=1000, threads=1)


def planned(edits=None, *, speed=REFERENCE, cores=2, results=None):
    return plan(load(smoke(edits)), speed, cores=cores, results=results or ROOT / "none")


def hub_series(folder, bytes_):
    """A source of three resolved checkpoints on the hub, and its config in the series file."""
    architecture = smoke()["models"]["decoder"]["source"]["architecture"] | {"vocab_size": 512}
    file = {"model.safetensors": {"bytes": bytes_, "sha256": "0" * 64}}
    entry = {"repo": "org/tiny", "subfolder": None, "files": file, "tokens_seen": None}
    steps = (0, 1, 10)
    checkpoints = [
        entry | {"label": f"step{n}", "step": n, "revision": f"step{n}", "commit": f"{n:040x}"} for n in steps
    ]
    tokenizer = {"repo": "org/tiny", "revision": "main", "subfolder": None, "commit": "0" * 40, "files": {}}
    known = {"model": "mine", "repo": "org/tiny", "total_steps": 10, "tokens_per_step": None, "config": architecture}
    path = folder / "mine.json"
    path.write_text(json.dumps(known | {"checkpoints": checkpoints, "tokenizer": tokenizer}))
    return {"kind": "hub", "repo": "org/tiny", "series": str(path)}
