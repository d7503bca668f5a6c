"""Two finished studies with planted differences: what is said of them, and what is said to be no comparison."""

import math

import pytest
import yaml
from finished_study import finished

from configs import smoke
from isotrace.cli import main
from isotrace.comparing import words
from isotrace.comparing.differences import mover, pairs, verdicts, warnings
from isotrace.comparing.sides import side
from isotrace.errors import ConfigError, DataError

BOTH = {"decoder": "decoder"}


def two(tmp_path, first=None, second=None):
    models = ("decoder",)
    one = finished(tmp_path / "one", **({"models": models} | (first or {})))
    other = finished(tmp_path / "other", **({"models": models} | (second or {})))
    return side(one), side(other)


def configured(folder, study, results, edits=None):
    file = folder / f"{study}.yaml"
    file.write_text(yaml.safe_dump(smoke({"study": study, "pathvars": {"results": str(results)}, **(edits or {})})))
    return file


def test_a_planted_quotient_and_difference_come_out_with_their_intervals(tmp_path):
    first, second = two(tmp_path, {"cosine": 0.2}, {"ratio": 8.0, "cosine": 0.5})
    found = {(p.first.key, p.first.of): p for p in pairs(first, second, BOTH, 4, "pca")}
    peak = found["energy_peak", "fixed"]
    width = math.hypot(math.log(1.1), math.log(1.1))
    assert peak.quotient
    assert (peak.change, peak.lo, peak.hi) == pytest.approx((2, 2 * math.exp(-width), 2 * math.exp(width)))
    assert peak.apart
    last = found["cosine_last", ""]
    assert not last.quotient
    assert (last.change, last.lo, last.hi) == pytest.approx((0.3, 0.3 - math.hypot(0.01, 0.01), 0.3 + 0.01 * 2**0.5))
    early = found["energy_early", "fixed"]
    assert (early.change, early.apart) == (pytest.approx(1), False)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ((1, 0, 2), (4, 3, 5), (3, 3 - 2**0.5, 3 + 2**0.5)),
        ((1, 1, 1), (4, 2, 5), (3, 1, 4)),  # a known number moves the other's interval
        ((4, 2, 5), (4, 4, 4), (0, -1, 2)),  # and turns it round when it is taken away
    ],
)
def test_the_interval_of_a_difference_is_that_of_mover(a, b, wanted):
    assert mover(a, b) == pytest.approx(wanted)


def test_an_interval_that_is_missing_stays_missing():
    assert math.isnan(mover((1, math.nan, 2), (4, 3, 5))[1] + mover((1, math.nan, 2), (4, 3, 5))[2])


def test_verdicts_that_differ_are_listed_and_others_are_not(tmp_path):
    first, second = two(tmp_path, {}, {"verdict": "contradicted"})
    changed = verdicts(first, second, BOTH)
    assert changed[["model", "verdict_1", "verdict_2"]].values.tolist() == [["decoder", "supported", "contradicted"]]
    assert verdicts(first, first, BOTH).empty


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"text": "cc"}, "decoder: text or tokenizer differ; numbers are of different tokens"),
        ({"sample": "cc"}, "decoder: sampled positions differ; numbers are of different tokens"),
    ],
)
def test_other_text_or_positions_are_warned_of(tmp_path, changes, said):
    first, second = two(tmp_path, {}, changes)
    assert list(warnings(first, second, BOTH)) == ([said] if said else [])


def test_the_rank_of_both_is_taken_and_without_one_nothing_is_compared(tmp_path):
    first, second = two(tmp_path, {"ranks": (2, 4)}, {"ranks": (4, 8)})
    assert words.common_rank(first, second, None) == 4
    with pytest.raises(ConfigError, match=r"compare --rank: 8 is not in both; there are \[4\]"):
        words.common_rank(first, second, 8)
    alone = side(finished(tmp_path / "alone", models=("decoder",), ranks=(8,)))
    with pytest.raises(ConfigError, match=r"no rank in common \(\[2, 4\]; \[8\]\)"):
        words.common_rank(first, alone, None)


def test_models_of_other_names_are_paired_by_the_user_or_where_there_is_one_of_each(tmp_path):
    first, second = two(tmp_path, {"models": ("a", "b")}, {"models": ("b", "c")})
    assert words.matched(first, second, {}) == {"b": "b"}
    assert words.matched(first, second, {"a": "c"}) == {"a": "c"}
    with pytest.raises(ConfigError, match="compare --model: one has no x; there are a, b"):
        words.matched(first, second, {"x": "c"})
    alone = side(finished(tmp_path / "alone", models=("z",)))
    with pytest.raises(ConfigError, match=r"no model has the same name in both \(a, b; z\)"):
        words.matched(first, alone, {})
    assert words.matched(alone, side(finished(tmp_path / "y", models=("y",))), {}) == {"z": "y"}


def test_two_configs_are_told_apart_key_by_key(tmp_path, capsys):
    finished(tmp_path / "one", models=("decoder", "encoder"))
    finished(tmp_path / "other", models=("decoder",), ratio=8.0, verdict="undecided", text="cc", ranks=(2, 4))
    first = configured(tmp_path, "one", tmp_path / "one")
    edits = {"dynamics.rank": 2, "isotropy.ranks": [2], "energy.resamples": 500, "execution.numeric_threads": 2}
    second = configured(tmp_path, "other", tmp_path / "other", edits)
    assert main(["compare", str(first), str(second)]) == 0
    told = capsys.readouterr().out
    assert "warning: decoder: text or tokenizer differ; numbers are of different tokens" in told
    assert "warning: dynamics.rank: 4 and 2; claims and figures of the two are of different ranks" in told
    assert "left out: encoder, of one alone" in told
    lines = [line.split() for line in told.splitlines()]
    assert ["energy.resamples", "200", "500"] in lines
    assert ["dynamics.rank", "4", "2"] in lines
    assert "numeric_threads" not in told
    (peak,) = [line for line in told.splitlines() if "peak gradient energy ratio (fixed)" in line]
    assert "4 [3.64, 4.4] at block.0 50" in peak
    assert "x2 [x1.75, x2.29]" in peak
    assert peak.endswith("yes")
    assert "early_above_late  decoder  supported 4 [3, 5]  undecided 8 [7, 9]" in told


def test_the_numbers_come_as_csv_too(tmp_path, capsys):
    first, second = two(tmp_path, {}, {"cosine": 0.5})
    assert main(["compare", str(first.results), str(second.results), "--format", "csv"]) == 0
    head, *rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    found = [dict(zip(head, row, strict=True)) for row in rows]
    (peak,) = [r for r in found if r["model"] == "decoder" and r["number"] == "cosine_peak"]
    assert (float(peak["value_1"]), float(peak["value_2"]), peak["kind"]) == (0.2, 0.5, "difference")
    assert float(peak["change"]) == pytest.approx(0.3)


def test_what_is_no_finished_study_is_one_line(tmp_path, capsys):
    with pytest.raises(DataError, match="no tables of a finished study"):
        side(tmp_path)
    finished(tmp_path / "one", models=("decoder",))
    wrong = configured(tmp_path, "mine", tmp_path / "one")
    assert main(["compare", str(wrong), str(tmp_path / "one")]) == 1
    assert capsys.readouterr().err == f"isotrace: error: {tmp_path}/one/tables hold study one, not mine; run it again\n"
    assert main(["compare", str(tmp_path / "one"), str(tmp_path / "one"), "--model", "decoder"]) == 1
    assert capsys.readouterr().err == "isotrace: error: compare --model: 'decoder' is not FIRST=SECOND\n"
