"""The Python of the pages that read results, as written, on the finished smoke study."""

import os
import subprocess
import sys

import pytest

from documented import blocks


@pytest.mark.parametrize(
    ("page", "said"),
    [("tutorial.md", "bucket"), ("reference/stores.md", "ok")],
)
def test_what_the_page_reads_is_there(smoke, page, said):
    (block,) = blocks(page, "python")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        cwd=smoke.folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert said in ran.stdout
    assert "Empty DataFrame" not in ran.stdout
