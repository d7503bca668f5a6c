"""`isotrace show`: filters that keep what they say, columns as asked, and one line for a mistake."""

import pandas as pd
import pytest

from isotrace import showing, tables
from isotrace.cli import main
from isotrace.errors import ConfigError, DataError

FOUND = pd.DataFrame({
    "model": ["a", "a", "b", "b"],
    "step": [0, 64, 0, 128],
    "site": ["embed", "final_norm", "embed", "block.0"],
    "value": [1.0, 0.123456789, float("nan"), 1e-7],
})  # fmt: skip
POINT = {"model": "a", "checkpoint": "step8", "step": 8}


def points(folder, n=3):
    rows = [POINT | {"token_id": i, "count": i + 1, "norm": i / 3, "centroid_distance": 0.5} for i in range(n)]
    (folder / "tables").mkdir(parents=True)
    tables.write(folder / "tables" / "frequency_points.parquet", pd.DataFrame(rows), "frequency_points")
    return folder


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ([], [0, 1, 2, 3]),
        (["site=embed"], [0, 2]),
        (["site=embed,block.0"], [0, 2, 3]),
        (["site!=embed"], [1, 3]),
        (["step>=64"], [1, 3]),
        (["step > 64"], [3]),
        (["step<64", "model=b"], [2]),
        (["step=64,128"], [1, 3]),
        (["value<=1"], [0, 1, 3]),
        (["model=c"], []),
    ],
    ids=str,
)
def test_filters_keep_the_rows_that_pass_all_of_them(where, kept):
    assert showing.rows(FOUND, where, []).index.tolist() == kept


def test_columns_come_in_the_order_asked():
    assert list(showing.rows(FOUND, ["model=a"], ["value", "model"])) == ["value", "model"]


@pytest.mark.parametrize(
    ("where", "columns", "said"),
    [
        (["sites=embed"], [], "show --where: no column 'sites'; there are model, step, site, value"),
        (["step=x"], [], "show --where: 'step=x': step holds numbers"),
        (["embed"], [], "show --where: 'embed' is not COLUMN=VALUE; also !=, <, <=, > and >= are known"),
        ([], ["vale"], "show --columns: no column 'vale'; there are model, step, site, value"),
    ],
)
def test_a_mistake_names_what_there_is(where, columns, said):
    with pytest.raises(ConfigError) as caught:
        showing.rows(FOUND, where, columns)
    assert str(caught.value) == said


def test_text_leaves_what_is_the_same_to_the_first_line_and_says_what_it_leaves_out():
    told = showing.text(FOUND[FOUND["model"] == "a"].assign(note="n" * 80), 0).splitlines()
    assert told[0] == f"model=a, note={'n' * 59}…"
    assert told[1].split() == ["step", "site", "value"]
    assert told[3].split() == ["64", "final_norm", "0.123457"]
    assert showing.text(FOUND, 1).splitlines()[-1] == "and 3 more rows; --limit 0 shows all"


def test_one_row_is_shown_with_all_its_columns():
    assert showing.text(FOUND.head(1), 0).splitlines()[0].split() == ["model", "step", "site", "value"]


def test_the_command_prints_csv_that_reads_back(tmp_path, capsys):
    results = points(tmp_path)
    assert (
        main(["show", "frequency_points", "--results", str(results), "--where", "token_id>=1", "--format", "csv"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(",")[:2] == ["model", "checkpoint"]
    assert [line.split(",")[3] for line in lines[1:]] == ["1", "2"]


def test_without_a_name_everything_is_listed(tmp_path, capsys):
    results = points(tmp_path)
    (results / "figures").mkdir()
    (results / "figures" / "toy.pdf").touch()
    assert main(["show", "--results", str(results)]) == 0
    assert capsys.readouterr().out == "tables/frequency_points: 3 rows of 7 columns\nfigures/toy\n"


def test_a_figure_is_its_files_and_its_caption(tmp_path, capsys):
    figures = tmp_path / "figures"
    figures.mkdir()
    for name in ("toy.pdf", "toy.csv"):
        (figures / name).touch()
    assert main(["show", "toy", "--results", str(tmp_path)]) == 0
    pdf, csv, caption = capsys.readouterr().out.splitlines()
    assert (pdf, csv) == (str(figures / "toy.pdf"), str(figures / "toy.csv"))
    assert "attention alone" in caption
    (figures / "toy.rst").write_text("Made **with**\nthe figure.\n")
    assert showing.figure(tmp_path, "toy").splitlines()[-1] == "Made with the figure."


def test_a_name_of_both_is_a_table_unless_its_folder_is_named(tmp_path):
    points(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "frequency_points.pdf").touch()
    assert showing.kind_of(tmp_path, "frequency_points") == ("tables", "frequency_points")
    assert showing.kind_of(tmp_path, "figures/frequency_points") == ("figures", "frequency_points")
    with pytest.raises(DataError, match="holds no energy; there are tables/frequency_points, figures/frequency_points"):
        showing.kind_of(tmp_path, "energy")


def test_units_are_told_of_every_column(capsys):
    assert main(["show", "energy", "--about"]) == 0
    told = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "share of trace" in told["energy"]
    assert told["site"].endswith("key")


@pytest.mark.parametrize("arguments", [["show"], ["show", "--about"], ["show", "none", "--about"]])
def test_a_mistake_is_one_line(arguments, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert main([*arguments, "--results", str(tmp_path / "empty")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("isotrace: error: ")
    assert err.count("\n") == 1
