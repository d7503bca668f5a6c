"""The card's page: whole HTML, self-contained, escaped, the same bytes again, and readable on a phone."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import card_tables as made
from isotrace.card.made import card
from isotrace.card.page import page
from isotrace.card.pictures import picture

VOID = {"meta", "br"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PHONE = 360


class Balanced(HTMLParser):
    """Collects tags and attributes; every tag that opens closes again, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: dict[str, list[str]] = {}

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def alarming():
    geometry = made.geometry(mean_cosine=lambda step, s, b: 0.9 if step >= 40 else 0.1)
    return made.tables(geometry=geometry[geometry["metric"] != "max_over_median_norm"])


def html_of(tables, model="mine", study="made"):
    return page(card(tables, model, None, made.how()), study)


def parsed(text):
    parser = Balanced()
    parser.feed(text)
    parser.close()
    return parser


@pytest.mark.parametrize("tables", [made.tables(), alarming(), {}], ids=["ok", "alarm", "nothing"])
def test_the_page_is_whole_and_loads_nothing(tables):
    text = html_of(tables)
    found = parsed(text)
    assert found.open == []
    assert not {"script", "link", "img", "iframe", "object"} & set(found.seen)
    assert not {"src", "href", "srcset"} & set(found.attributes)
    assert re.findall(r"https?:|url\(|@import|//", text) == []
    assert "width=device-width, initial-scale=1" in found.attributes["content"]
    assert found.seen.count("article") == 8
    assert "nan" not in text.lower().replace("dominant", "")
    assert text == html_of(tables)


def test_it_says_verdict_since_when_cause_and_what_next():
    text = html_of(alarming())
    assert "<p class='verdict alarm'>By these thresholds, yes, step 100.</p>" in text
    assert "Beyond it since step 40" in text
    assert "<b>A common mean direction: likely.</b>" in text
    assert "not measured: geometry.metrics does not name max_over_median_norm" in text
    assert "7 of 8 measures could be judged" in text
    assert "No sign of it, step 100." in html_of(made.tables())
    assert "Nothing here can tell." in html_of({})


def test_names_are_escaped():
    text = html_of(made.tables(), study="<b>mine</b> & others")
    assert "&lt;b&gt;mine&lt;/b&gt; &amp; others" in text


def test_a_picture_holds_every_checkpoint_of_the_worst_site_inside_its_frame():
    finding = card(alarming(), "mine", None, made.how()).findings[0]
    text = picture(finding)
    assert text.count("<circle") == len(made.STEPS)
    width, height = map(float, re.search(r"viewBox='0 0 (\d+) (\d+)'", text).groups())
    points = np.array([[float(x), float(y)] for x, y in re.findall(r"([\d.-]+),([\d.-]+)(?=[ '])", text)])
    assert (points >= 0).all()
    assert (points <= [width, height]).all()
    assert text.count("stroke-dasharray") == 2
    unknown = card({}, "mine", None, made.how()).findings[0]
    assert picture(unknown) == ""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the page is not looked at in a browser")
def test_a_browser_shows_it_on_a_phone_without_scrolling_sideways(tmp_path: Path):
    """A frame as wide as a phone, for a browser's own window is wider; what it measures stands in the title."""
    (tmp_path / "card.html").write_text(html_of(alarming(), study="a_long_name_of_a_study_" * 6))
    measure = "document.title=['scrollWidth','clientWidth'].map(k=>f.contentDocument.documentElement[k]).join()"
    frame = f"<iframe id=f src=card.html width={PHONE} height=900 style='border:0'></iframe>"
    (tmp_path / "phone.html").write_text(f"<body style='margin:0'>{frame}<script>onload=()=>{{{measure}}}</script>")
    shared = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=500,900",
    ]  # fmt: skip
    target = (tmp_path / "phone.html").as_uri()
    dumped = subprocess.run([*shared, "--dump-dom", target], capture_output=True, text=True, timeout=100, check=True)
    scrolled, wide = map(int, re.search(r"<title>(\d+),(\d+)</title>", dumped.stdout).groups())
    assert scrolled == wide
    assert 300 <= wide <= PHONE
    shot = tmp_path / "shot.png"
    subprocess.run([*shared, f"--screenshot={shot}", target], capture_output=True, timeout=100, check=True)
    drawn = colours(shot)
    assert (164, 38, 44) in drawn  # the alarm's edge
    assert (249, 224, 224) in drawn  # the verdict's ground
    assert len(drawn) > 20


def colours(path: Path) -> set[tuple[int, ...]]:
    from matplotlib.image import imread

    pixels = (imread(path)[..., :3] * 255).round().astype(int)
    return set(map(tuple, np.unique(pixels.reshape(-1, 3), axis=0).tolist()))
