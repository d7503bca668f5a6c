"""`isotrace check`: rows and exit codes from the tables of a study on disk, in a folder of the test's own."""

import pytest
import yaml

import card_tables as made
from configs import REMOVED, smoke
from isotrace.cli import main


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes a config of the one model mine, with edits, and gives its path."""
    monkeypatch.chdir(tmp_path)

    def write(**edits):
        raw = smoke({"study": "made", "models.encoder": REMOVED} | edits)
        raw["models"] = {"mine": raw["models"].pop("decoder")}
        file = tmp_path / "mine.yaml"
        file.write_text(yaml.safe_dump(raw))
        return str(file)

    return write


def alarming():
    return made.tables(geometry=made.geometry(mean_cosine=lambda step, s, b: 0.9 if step >= 40 else 0.1))


def test_a_healthy_model_exits_0_with_a_line_a_measure(config, tmp_path, capsys):
    made.write(tmp_path / "results", made.tables())
    assert main(["check", "--configfile", config()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mine: ok (no sign of it)"
    assert len(lines) == 9
    assert lines[1] == (
        "  ok      Mean cosine after the final norm: 0.2 [0.19, 0.21] at final_norm, step 100 "
        "(watch above 0.5, alarm above 0.8)"
    )


def test_an_alarm_exits_1_and_says_since_when_why_and_what_next(config, tmp_path, capsys):
    made.write(tmp_path / "results", alarming())
    assert main(["check", "--configfile", config(), "--model", "mine"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "  alarm   Mean cosine after the final norm: 0.9 [0.89, 0.91]" in captured.out
    assert "Beyond it since step 40, from block.0 on" in captured.out
    assert "a common mean direction: likely" in captured.out
    assert "  look at figures cosine_by_depth" in captured.out


def test_a_threshold_of_the_config_turns_the_alarm_into_a_watch(config, tmp_path, capsys):
    made.write(tmp_path / "results", alarming())
    edits = {"card": {"thresholds": {"mean_cosine": {"watch": 0.5, "alarm": 0.95}}}}
    assert main(["check", "--configfile", config(**edits)]) == 0
    assert capsys.readouterr().out.startswith("mine: watch")


def test_a_check_that_sees_nothing_does_not_pass(config, tmp_path, capsys):
    made.write(tmp_path / "results", made.without_newest(made.tables(), "truncated file"))
    assert main(["check", "--configfile", config()]) == 1
    captured = capsys.readouterr()
    assert "step100: truncated file" in captured.out
    assert captured.err.startswith("isotrace: error: check: nothing of mine could be judged")
    assert captured.err.count("\n") == 1


def test_before_any_run_or_for_an_unknown_model_it_is_one_line(config, tmp_path, capsys):
    assert main(["check", "--configfile", config()]) == 1
    assert "energy.parquet: not there; finish the study first: isotrace run" in capsys.readouterr().err
    made.write(tmp_path / "results", made.tables())
    assert main(["check", "--configfile", config(), "--model", "yours"]) == 1
    assert capsys.readouterr().err == "isotrace: error: check --model: 'yours' is not among the models mine\n"


def test_tables_of_another_study_are_refused(config, tmp_path, capsys):
    made.write(tmp_path / "results", made.tables())
    assert main(["check", "--configfile", config(study="other")]) == 1
    assert "hold study made, not other" in capsys.readouterr().err
