"""Every link between pages leads to a file and a heading, and every page is in the menu once."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from documented import DOCS, ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "config/*.md", "results/*.md")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def prose(page: Path) -> str:
    """A page without its fenced blocks and code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Those of its headings and of the headings of what the site puts into it."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    own = {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)}
    shown = re.findall(r'^--8<-- "([^":]+)"$', text, flags=re.MULTILINE)
    return frozenset(own.union(*(anchors(ROOT / name) for name in shown)))


def slug(heading: str) -> str:
    """As GitHub and the site both make it: letters, digits and underscores, the rest of a title's marks dropped."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def targets(page: Path) -> Iterator[str]:
    yield from (t for t in LINK.findall(prose(page)) if not t.startswith(("http://", "https://", "mailto:")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in targets(page):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{target}: no such file"
        assert not anchor or anchor in anchors(file), f"{target}: no such heading"


def test_a_heading_has_the_anchor_that_github_gives_it():
    assert slug("13 Contact order, and `curvature_visibility`?") == "13-contact-order-and-curvature_visibility"


def menu(entries: list) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from menu(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_menu_once():
    listed = list(menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))


def test_pages_that_people_write_are_short_enough_to_read():
    generated = {"reference/tables.md", "reference/cli.md"}
    written = [p for p in DOCS.rglob("*.md") if str(p.relative_to(DOCS)) not in generated]
    assert {p.name: n for p in written if (n := len(p.read_text().splitlines())) > 250} == {}
