"""The digest of a rule's code changes with the code it reaches, and with nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from configs import ROOT

NAMES = ("capture", "energy", "isotropy", "geometry", "figures", "tables", "audit", "untrained")
PRINT = """
import json, sys
from pathlib import Path
from isotrace.digest import code_digest
from isotrace.input_params import SCRIPTS
print(json.dumps({name: code_digest(SCRIPTS / f"{name}.py") for name in sys.argv[1:]}))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of workflow/ to be edited."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow", ignore=ignored)
    return tmp_path / "workflow"


def digests(workflow: Path) -> dict[str, str]:
    """Digests by script, from the code in ``workflow``."""
    import json

    command = [sys.executable, "-c", PRINT, *NAMES]
    out = subprocess.run(command, env={"PYTHONPATH": str(workflow)}, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(out.stdout)
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_comments_docstrings_and_layout_change_nothing(copy):
    before = digests(copy)
    for file in copy.rglob("*.py"):
        file.write_text("# a remark\n\n\n" + file.read_text() + '\n\n# another\n"""And a bare string."""\n')
    energy = copy / "isotrace" / "geometry" / "energy.py"
    energy.write_text('"""Opening."""\n\n' + energy.read_text())
    assert changed(before, digests(copy)) == set()


def test_an_analysis_changes_its_own_digest_and_not_the_captures(copy):
    before = digests(copy)
    energy = copy / "isotrace" / "geometry" / "energy.py"
    energy.write_text(energy.read_text() + "\nUNUSED = 1\n")
    assert changed(before, digests(copy)) == {"energy"}


def test_no_edit_of_an_analysis_reaches_a_capture(copy):
    before = digests(copy)
    for name in ("energy", "subspaces", "semi_nmf", "nulls", "removal", "ablation", "summed", "frequency"):
        module = copy / "isotrace" / "geometry" / f"{name}.py"
        module.write_text(module.read_text() + "\nUNUSED = 1\n")
    assert not changed(before, digests(copy)) & {"capture", "untrained", "audit"}


def test_what_many_reach_changes_many(copy):
    before = digests(copy)
    seeding = copy / "isotrace" / "seeding.py"
    seeding.write_text(seeding.read_text() + "\nUNUSED = 1\n")
    found = changed(before, digests(copy))
    assert {"energy", "isotropy", "geometry", "audit"} <= found
    assert "tables" not in found


def test_a_default_a_name_and_an_operator_are_code(copy):
    edits = (
        ("grids.py", "CHUNK_BYTES = 2**21", "CHUNK_BYTES = 2**20"),
        ("store.py", "SCHEMA_VERSION = 2", "SCHEMA_VERSION = 3"),
    )
    for file, old, new in edits:
        before = digests(copy)
        edit(copy / "isotrace" / file, old, new)
        assert {"capture", "energy"} <= changed(before, digests(copy))


def test_an_import_inside_a_function_is_followed(copy):
    script, inner = copy / "scripts" / "energy.py", copy / "isotrace" / "inner.py"
    inner.write_text("def value():\n    from isotrace.deeper import VALUE\n    return VALUE\n")
    deeper = copy / "isotrace" / "deeper.py"
    deeper.write_text("VALUE = 1\n")
    script.write_text(script.read_text() + "\n\ndef late():\n    import isotrace.inner\n")
    before = digests(copy)
    deeper.write_text("VALUE = 2\n")
    assert changed(before, digests(copy)) == {"energy"}


def test_a_digest_is_sixteen_hex_digits_and_repeats(copy):
    found = digests(copy)
    assert all(len(d) == 16 and int(d, 16) >= 0 for d in found.values())
    assert found == digests(copy)
    assert len(set(found.values())) == len(NAMES)
