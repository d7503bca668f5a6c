"""The page in a real browser, as wide as a phone and as a desk: it fits, the chart is drawn, a choice changes it."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from made_report import config, energy, made
from matplotlib.image import imread

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = {"phone": 360, "desk": 1280}
MEASURE = """
const f = document.getElementById('f'), waited = () => new Promise(r => setTimeout(r, 50));
const marks = d => [...d.querySelectorAll('#chart svg .mark-line path, #chart svg .mark-symbol path')]
    .map(p => p.getAttribute('d') + p.getAttribute('transform')).join();
const drawn = async (d, not) => {
    for (let i = 0; i < 200 && (marks(d) === '' || marks(d) === not); i++) await waited();
    return marks(d);
};
onload = async () => {
    const d = f.contentDocument, root = d.documentElement, said = {};
    const first = await drawn(d, '');
    said.lines = d.querySelectorAll('#chart svg .mark-line path').length;
    said.points = d.querySelectorAll('#chart svg .mark-symbol.role-mark path').length;
    said.text = d.querySelector('#chart svg').textContent;
    said.changed = {};
    for (const [name, value] of Object.entries(%s)) {
        const menu = d.querySelector(`#choose select[name=${name}]`), before = marks(d);
        menu.value = value;
        menu.dispatchEvent(new Event('change', {bubbles: true}));
        menu.dispatchEvent(new Event('input', {bubbles: true}));
        said.changed[name] = (await drawn(d, before)) !== before;
    }
    said.wide = [root.scrollWidth, root.clientWidth];
    said.chart = d.querySelector('#chart svg').getBoundingClientRect().width;
    said.fetched = f.contentWindow.performance.getEntriesByType('resource').map(e => e.name)
        .filter(n => !n.startsWith('data:'));
    document.title = JSON.stringify(said);
};
"""
PICKS = {"model": "encoder", "site": "embed", "bucket": "b1", "rank": "1"}  # a menu's values are places in its list

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the page is not looked at in a browser"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    (folder / "report.html").write_text(made(folder, config=config() | {"study": "a_long_name_of_a_study_" * 6}))
    return folder


def browse(folder, name, *arguments, scripts=True, measure=True):
    """What the page says of itself in a frame of the width ``name``; a frame, for windows have a least width."""
    wide, kept = WIDTHS[name], "" if scripts else "sandbox=allow-same-origin"
    frame = f"<iframe id=f src=report.html width={wide} height=2400 style='border:0' {kept}></iframe>"
    run = f"<script>{MEASURE % json.dumps(PICKS)}</script>" if measure else ""
    (folder / f"{name}.html").write_text(f"<body style='margin:0'>{frame}{run}")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}",
        f"--window-size={max(wide, 500)},2400", "--virtual-time-budget=20000", *arguments,
        (folder / f"{name}.html").as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.parametrize("name", WIDTHS)
def test_the_page_fits_and_what_is_picked_is_drawn(folder, name):
    said = json.loads(re.search(r"<title>(.*?)</title>", browse(folder, name, "--dump-dom"))[1].replace("&amp;", "&"))
    assert said["wide"][0] == said["wide"][1]
    assert said["wide"][1] > 0.9 * WIDTHS[name]
    assert said["fetched"] == []
    assert said["lines"] == 4  # two buckets in two bases
    assert said["points"] == 4 * len(energy()["step"].unique())
    assert "init" in said["text"]
    assert said["changed"] == dict.fromkeys(PICKS, True)
    assert 0.8 * min(said["wide"][1], 900) < said["chart"] <= said["wide"][1]


def test_without_scripts_the_picture_shows_and_the_chart_does_not(folder):
    seen = {}
    for scripts in (True, False):
        shot = folder / f"shot_{scripts}.png"
        browse(folder, "desk", f"--screenshot={shot}", scripts=scripts, measure=False)
        seen[scripts] = (imread(shot)[..., :3] * 255).round()
    picture, chart = (31, 119, 180), (17, 34, 78)  # the line of the PNG, a line of the chart
    assert has(seen[True], picture)
    assert has(seen[True], chart)
    assert has(seen[False], picture)
    assert not has(seen[False], chart)


def has(image, colour):
    return bool((np.abs(image - np.array(colour)).max(axis=2) <= 3).any())
