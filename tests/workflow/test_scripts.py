"""What a job of an analysis imports before it works: thousands of jobs pay for it."""

import subprocess
import sys

import pytest

from isotrace.input_params import SCRIPTS

HEAVY = {"torch", "transformers", "tokenizers", "sklearn", "skdim", "statsmodels", "matplotlib", "xarray", "snakemake"}


@pytest.mark.parametrize("script", ["energy", "isotropy"])
def test_analyses_import_nothing_heavy(script):
    lines = (SCRIPTS / f"{script}.py").read_text(encoding="utf-8").splitlines()
    code = "\n".join([line for line in lines if line.startswith(("from ", "import "))] + ["import sys"])
    code += "\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
    assert {"zarr", "pandas"} <= set(done.stdout.split())
