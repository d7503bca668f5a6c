"""The page of a study: every part is there, nothing is loaded from elsewhere, nothing of a table runs as HTML."""

import json
import re
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import pandas as pd
import pytest
from made_report import AUDIT, RUNTIME, config, figure, made, without_chart

from configs import ROOT
from isotrace.report.markup import caption
from isotrace.report.methods import notes
from isotrace.results import read_text

VOID = {"meta", "br", "img"}
SECTIONS = ["claims", "figures", "methods", "audit", "text", "runtime", "config", "cite"]


class Balanced(HTMLParser):
    """Every tag that opens closes again, in order; scripts, links and ids are kept."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.links, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.loaded += [given[name] for name in ("src", "srcset", "data", "action") if name in given]
        self.links += [given["href"]] if "href" in given else []
        self.ids += [given["id"]] if "id" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return made(tmp_path_factory.mktemp("page"))


def without_runtime(text):
    """By the very command that docs/how-to/report.md gives."""
    told = (ROOT / "docs" / "how-to" / "report.md").read_text(encoding="utf-8")
    command = re.search(r"sed '(.+?)'", told)[1]
    return subprocess.run(["sed", command], input=text, capture_output=True, text=True, check=True).stdout


def test_claims_stand_in_the_declared_order_with_estimate_and_verdict(text):
    assert text.index("The first &amp; best.") < text.index("The second.")
    assert "61.1 [57.7, 64.9]" in text
    assert "<td title=estimate>n/a</td>" in text
    assert "<td class='supported'>supported</td>" in text
    assert "<p>1 supported, 0 contradicted, 1 undecided.</p>" in text


def test_the_page_is_whole_escaped_and_loads_nothing(text):
    found = Balanced()
    found.feed(text)
    found.close()
    assert found.open == []
    assert [link.split(":")[0] for link in found.loaded] == ["data"]
    assert found.links == [f"#{name}" for name in SECTIONS]
    assert set(SECTIONS) <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert "<b>mine</b>" not in text
    assert "&lt;i&gt;the same" in text
    assert "width=device-width, initial-scale=1" in text


def test_every_part_is_there(text):
    parts = ("decoder: 61", "<b>Does it?</b> A caption &amp; <em>more</em>.", "51,200", "study: mine", "isotrace 0.")
    assert [part for part in parts if part not in text] == []
    assert "arXiv:2604.08764" in text
    assert "<td>capture</td><td class=number>6</td><td class=number>61.5</td>" in text


def test_warnings_stand_first_and_only_where_there_are_any(text, tmp_path):
    box = re.search(r"<div class=warnings>(.*?)</div>", text)[1]
    assert text.index("<div class=warnings>") < text.index("decoder: 61")
    assert "decoder: 3 rows leak" in box
    assert "decoder: duplicate (warning) at step0, step1, step2, step3, step4, …" in box
    assert "<li>warning: " not in text
    clean = made(tmp_path, headline=["decoder: 61"], tables=without_chart(AUDIT.iloc[:0]))
    assert "<div class=warnings>" not in clean
    assert "<p>Nothing to report.</p>" in clean


def test_two_pages_of_one_study_differ_in_what_the_jobs_took_alone(text, tmp_path):
    assert made(tmp_path) == text
    assert 0 < len(text) - len(without_runtime(text)) < 2000
    one, other, none = (
        made(tmp_path, tables=without_chart(), runtime=took)
        for took in (RUNTIME, RUNTIME.assign(**{"total [s]": 7.0}), RUNTIME.iloc[:0])
    )
    assert len({one, other, none}) == 3
    assert without_runtime(one) == without_runtime(other) == without_runtime(none)
    assert "<p>No benchmark files were found.</p>" in none


def test_without_energies_there_is_no_script_and_the_figures_stay(tmp_path):
    text = made(tmp_path, tables=without_chart())
    assert "<script" not in text
    assert text.count("<img") == 1


def test_the_main_figure_leads_whatever_the_config_names_first(tmp_path):
    both = {figure(tmp_path, "early_late"): "One.", figure(tmp_path): "Two."}
    text = made(tmp_path, figures=both, tables=without_chart())
    assert re.findall(r"<figure id=(\w+)>", text) == ["energy_over_training", "early_late"]
    alone = made(tmp_path, figures={figure(tmp_path, "early_late"): "One."})
    assert alone.index("<div id=explore") < alone.index("<figure id=early_late>")


def test_a_caption_keeps_its_emphasis_and_loses_its_line_breaks():
    assert caption("**Do they?** Yes,\n*always*; ``a < b``.\n\n2 models\\*, two\\_.\n") == (
        "<b>Do they?</b> Yes, <em>always</em>; <code>a &lt; b</code>. 2 models*, two_."
    )


def test_formulas_are_well_formed_and_speak_of_this_study():
    text = notes(config())
    formulas = re.findall(r"<math.*?</math>", text)
    assert len(formulas) == 6
    for formula in formulas:
        ElementTree.fromstring(formula.replace("display=block", ""))
    read = config()["dynamics"]
    assert f"{read['method']}, k = {read['rank']}" in text
    assert f"B = {config()['energy']['draws'][read['null_space']]} random subspaces" in text
    ambient = notes(config() | {"dynamics": read | {"null_space": "ambient"}})
    assert "anywhere" in ambient
    assert len(re.findall(r"<math.*?</math>", ambient)) == 6


def test_every_checkpoint_of_a_series_is_shown_with_what_was_found(text):
    assert "decoder: 1 checkpoints, 2,000 steps" in text
    assert "<td>BF16 + F32</td><td>0123456789ab</td><td>step10 (2)</td><td>0.512 !</td><td>0.04</td>" in text
    assert "other_run: &lt;i&gt;uncorrelated" in text
    assert "<td>left_out: half-written</td>" in text
    assert "<th>commit</th>" not in text  # empty in every row


def test_what_a_model_reads_comes_from_its_tokens(tmp_path):
    text = {"fr": {"language": "fr", "n_tokens": 30}, "wiki": {"language": None, "n_tokens": 90}}
    (tmp_path / "decoder.json").write_text(json.dumps({"attributes": {"text": text}}))
    rows = read_text([str(tmp_path / "decoder.json")]).to_dict("records")
    assert rows[0] == {"model": "decoder", "corpus": "fr", "language": "fr", "tokens": 30, "share": 0.25}
    assert (rows[1]["language"], rows[1]["share"]) == ("not given", 0.75)
    assert read_text([]).equals(pd.DataFrame([]))
