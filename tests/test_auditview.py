"""The audit in the terminal: every checkpoint, brackets as they are, an older lock refused."""

import pytest

from isotrace.auditview import print_audit
from isotrace.errors import DataError
from made_lock import LOCK


def test_every_checkpoint_is_printed_and_empty_columns_are_not(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    found = {"finding": "broken", "severity": "error", "detail": "keys [/a] and [bold]b"}
    print_audit([LOCK | {"checkpoints": [LOCK["checkpoints"][0] | {"findings": [found]}]}])
    out = capsys.readouterr().out
    assert "decoder (local, 2,000 steps)" in out
    assert "broken: keys [/a] and [bold]b" in out
    assert "left_out: half-written" in out
    assert "commit" not in out


def test_a_lock_of_an_older_version_is_refused_by_name():
    old = {name: value for name, value in LOCK.items() if name != "left_out"}
    with pytest.raises(DataError, match="the lock of decoder is an older version's"):
        print_audit([old])
