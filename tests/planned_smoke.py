"""The plan of the smoke study on a machine of known speed."""

from configs import ROOT, smoke
from isotrace.plan import plan
from isotrace.planning.calibration import Calibration
from isotrace.study import load

REFERENCE = Calibration(gflops=100, start=0.5, write=1000, threads=1)


def planned(edits=None, *, speed=REFERENCE, cores=2, results=None):
    return plan(load(smoke(edits)), speed, cores=cores, results=results or ROOT / "none")
