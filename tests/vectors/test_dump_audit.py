"""Audits of dumps: copies, copied sites and broken files are named, a clean series raises nothing."""

import json

import numpy as np
import pytest

from dumped import FORMATS, NAMES, arrays, write
from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.checkpoints.lock import findings, lock, refuse_broken
from isotrace.checkpoints.overview import overview
from isotrace.errors import DataError
from isotrace.vectors.audit import audit_dump

STEPS = (0, 10, 90)


def audited(path, step, first, **edits):
    spec = {"id": f"step{step}", "step": step, "tokens_seen": None, "objective": "clm", "source": {"path": str(path)}}
    spec["source"] |= {"revision": None, "subfolder": None, "commit": None}
    return audit_dump(path, {**spec, "arrays": {**NAMES, "split": None}, "sites": None, "first": str(first), **edits})


def series(folder, contents, ending=".npz"):
    """Audits of dumps at ``STEPS``, and their lock."""
    paths = [write(folder / f"step_{s}{ending}", c) for s, c in zip(STEPS, contents, strict=True)]
    audits = [audited(path, step, paths[0]) for path, step in zip(paths, STEPS, strict=True)]
    json.dumps(audits)
    return audits, lock("m", "vectors", 90, audits)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_clean_series_raises_nothing(tmp_path, ending):
    audits, made = series(tmp_path, [arrays(s) for s in STEPS], ending)
    assert findings(made) == []
    assert [c["status"] for c in made["checkpoints"]] == ["ok"] * 3
    assert {len(a["tensors_digest"]) for a in audits} == {64}
    assert all(a["files"] and a["dtypes"] == {"F32": 2} for a in audits)
    assert [row["distance"] + row["correlation"] for row in overview(made)] == [""] * 3


def test_an_audit_of_a_dump_has_the_fields_of_any_other(tmp_path):
    (tmp_path / "none").mkdir()
    spec = {"id": "step0", "step": 0, "tokens_seen": None, "objective": "clm", "config": None, "source": {}}
    spec["remote_code"] = None
    other = audit_checkpoint(tmp_path / "none", spec)
    assert set(audited(tmp_path / "gone.npz", 0, tmp_path / "gone.npz")) == {*other, "objective"}


def test_formats_agree_on_what_a_dump_holds(tmp_path):
    found = [audited(p, 0, p) for p in (write(tmp_path / f"d{e}", arrays()) for e in FORMATS)]
    assert len({a["tensors_digest"] for a in found}) == 1


def test_the_sign_of_zero_is_no_difference(tmp_path):
    zero = arrays() | {"acts": np.zeros_like(arrays()["acts"])}
    audits, made = series(tmp_path, [zero, zero | {"acts": -zero["acts"]}, arrays(90)])
    assert audits[0]["tensors_digest"] == audits[1]["tensors_digest"]
    assert made["checkpoints"][1]["duplicate_of"] == "step0"


def test_a_dump_that_repeats_another_is_a_duplicate(tmp_path):
    _, made = series(tmp_path, [arrays(0), arrays(10), arrays(10)])
    assert [(f["checkpoint"], f["finding"]) for f in findings(made)] == [("step90", "duplicate")]


def test_a_site_copied_from_another_step_is_named(tmp_path):
    stale = arrays(90)
    stale["grads"][1] = arrays(10)["grads"][1]
    _, made = series(tmp_path, [arrays(0), arrays(10), stale])
    (found,) = findings(made)
    assert (found["checkpoint"], found["finding"]) == ("step90", "shared_tensors")
    assert "gradients.block.1" in found["detail"]


def broken(tmp_path, edit):
    wrong = arrays(10)
    edit(wrong)
    return series(tmp_path, [arrays(0), wrong, arrays(90)])


EDITS = [
    (lambda c: c["acts"].__setitem__((0, 3, 1), np.nan), "1 rows of acts at block.0 are not finite"),
    (lambda c: c.pop("grads"), "no array 'grads'; there are acts"),
    (lambda c: c.update(seq=c["seq"][:-1]), "an integer for each of the 600 rows"),
    (lambda c: c.update(acts=c["acts"][..., :6], grads=c["grads"][..., :6]), "2 sites of width 6, but 2 of width 12"),
    (lambda c: c.update(ids=np.array([object()] * 600)), "holds Python objects"),
]


@pytest.mark.parametrize(("edit", "said"), EDITS, ids=[said for _, said in EDITS])
def test_a_broken_dump_says_why_and_the_others_go_on(tmp_path, edit, said):
    audits, made = broken(tmp_path, edit)
    assert [c["status"] for c in made["checkpoints"]] == ["ok", "broken", "ok"]
    assert said in audits[1]["reason"]
    assert audits[1]["files"]
    assert [f["finding"] for f in findings(made)] == ["broken"]
    with pytest.raises(DataError, match="on_broken is error: step10"):
        refuse_broken(audits, "error")


def test_a_truncated_dump_is_broken(tmp_path):
    path = write(tmp_path / "step_0.safetensors", arrays())
    path.write_bytes(path.read_bytes()[:-40])
    found = audited(path, 0, path)
    assert found["status"] == "broken"
    assert "truncated" in found["reason"]


def test_other_dtypes_are_named(tmp_path):
    half = arrays(10)
    half |= {name: half[name].astype(np.float16) for name in ("acts", "grads")}
    _, made = series(tmp_path, [arrays(0), half, arrays(90)])
    assert [(f["checkpoint"], f["finding"]) for f in findings(made)] == [("step10", "mixed_dtype")]
