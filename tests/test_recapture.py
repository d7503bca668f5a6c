"""Rows that were cleaned: which they are, what is said of them, and when a run may go on."""

import pytest

from isotrace.errors import ConfigError
from isotrace.recapture import Rows, note, refuse


@pytest.fixture
def rows(tmp_path):
    """Rows of some checkpoints: cleaned, but for those of ``there`` and of ``new``, which were never captured."""

    def of(*steps, there=(), new=()):
        found = []
        for step in steps:
            one = Rows(*(tmp_path / kind / "decoder" / f"step{step}.{end}" for kind, end in KINDS.items()))
            kept = (one.cache, one.moments) if step in there else () if step in new else (one.moments,)
            for file in kept:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("{}")
            found.append(one)
        return found

    return of


KINDS = {"cache": "json", "moments": "json", "benchmarks": "tsv"}


def test_rows_that_were_never_captured_need_no_leave(rows):
    refuse(rows(0, 3, new=(0, 3)), allowed=False)
    refuse(rows(0, 3, there=(0,), new=(3,)), allowed=False)
    assert note(rows(0, 3, there=(0,), new=(3,))) == []


def test_cleaned_rows_are_refused_by_name_unless_allowed(rows):
    wanted = rows(10, 3, 100, 0, there=(0,))
    with pytest.raises(ConfigError, match=r"3 checkpoints \(decoder step3, decoder step10, decoder step100\)") as said:
        refuse(wanted, allowed=False)
    assert "--recapture" in str(said.value)
    assert "recapture=true" in str(said.value)
    refuse(wanted, allowed=True)


def test_the_time_is_that_of_the_passes_and_long_lists_are_cut(rows):
    wanted = rows(*range(1, 10))
    for one in wanted[:4]:
        one.benchmark.parent.mkdir(parents=True, exist_ok=True)
        one.benchmark.write_text("s\th:m:s\n60.0\t0:01:00\n")
    (line,) = note(wanted)
    assert "9 checkpoints" in line
    assert "decoder step6 and 3 more; 9 min of jobs when last done" in line
    wanted[0].benchmark.write_text("nonsense")
    assert "9 min" in note(wanted)[0]
