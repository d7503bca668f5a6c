"""Fenced blocks of the documentation, for tests that use them as they are written.

A block's title names its file: Python and YAML are written there, a diff changes what stands there.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FENCE = re.compile(
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """One fenced block; ``title`` is empty where it belongs to no file."""

    language: str
    title: str
    text: str

    def apply(self, root: Path) -> None:
        """A diff replaces the one place that it shows, Python goes to the end of its file, other files are new."""
        file = root / self.title
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if self.language == "diff":
            old, new = ("".join(self._lines(kept)) for kept in (" -", " +"))
            assert before.count(old) == 1, f"{self.title} holds {before.count(old)} times:\n{old}"
            after = before.replace(old, new)
        else:
            after = f"{before}\n\n{self.text}" if before else self.text
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(after, encoding="utf-8")

    def _lines(self, kept: str) -> list[str]:
        return [line[1:] or "\n" for line in self.text.splitlines(keepends=True) if line[0] in kept]


def blocks(page: str, *languages: str) -> list[Block]:
    """The blocks of a page below docs/ in order, of these languages or of any."""
    found = [
        Block(**match.groupdict(default="")) for match in FENCE.finditer((DOCS / page).read_text(encoding="utf-8"))
    ]
    return [block for block in found if not languages or block.language in languages]


def commands(page: str) -> list[list[str]]:
    """The words of every line of the page's console blocks."""
    return [line.split() for block in blocks(page, "console") for line in block.text.splitlines()]


def write_files(page: str, folder: Path) -> None:
    """Write every titled block of a page below ``folder``."""
    for block in blocks(page):
        if block.title:
            block.apply(folder)
