"""A user's score file: read as it is meant, refused in one line otherwise."""

import pytest

from configs import smoke
from isotrace.card.scores import read_scores
from isotrace.errors import ConfigError, DataError
from isotrace.study import load


def written(folder, text):
    file = folder / "scores.csv"
    file.write_text(text)
    return file


def test_a_file_is_read_by_step_with_gaps(tmp_path):
    frame = read_scores(written(tmp_path, "step, accuracy,f1\n20,0.5,\n3,0.25,1\n"))
    assert frame["step"].tolist() == [3, 20]
    assert frame["accuracy"].tolist() == [0.25, 0.5]
    assert frame["f1"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a readable CSV"),
        ("steps,accuracy\n1,2\n", "needs the column step and one a metric, and has steps, accuracy"),
        ("step\n1\n", "needs the column step"),
        ("step,f1\n1,0.5\n2,good\n", "line 3, column f1: 'good' is no number"),
        ("step,f1\n1,0.5\n1,0.6\n", "step 1 has two rows"),
        ("step,f1\n1.5,0.5\n", "no whole number"),
        ("step,f1\n,0.5\n", "a step is missing"),
    ],
)
def test_anything_else_is_one_line(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_scores(file)
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{file}: ")
    assert "\n" not in message


def test_scores_of_no_model_or_no_file_are_refused_before_any_job(tmp_path):
    file = str(written(tmp_path, "step,f1\n1,2\n"))
    assert load(smoke({"scores": {"decoder": file}})).scores == {"decoder": file}
    with pytest.raises(ConfigError, match=r"^scores\.other: not among the models decoder, encoder$"):
        load(smoke({"scores": {"other": file}}))
    with pytest.raises(ConfigError, match=r"^scores\.decoder: no file none\.csv"):
        load(smoke({"scores": {"decoder": "none.csv"}}))
