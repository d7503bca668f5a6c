"""Kept memory is asked for again without page faults."""

import subprocess
import sys

import pytest

COUNT = """
import resource, sys
import numpy as np
from isotrace.checkpoints.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(3):
    np.ones(2**22)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(2**22)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_a_large_array_is_faulted_in_once() -> None:
    faults = {}
    for mode in ("plain", "kept"):
        done = subprocess.run([sys.executable, "-c", COUNT, mode], capture_output=True, text=True, check=True)
        faults[mode] = int(done.stdout)
    assert faults["kept"] < 0.1 * faults["plain"]
