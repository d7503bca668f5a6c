"""Lines that stay and one status line below them, in a terminal or a log file. Our own choice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TextIO

QUIET_SECONDS = 60.0
"""Where lines cannot be rewritten, a stage that is still running says so this often."""


class Screen:
    """Lines that stay and one status line: rewritten in place on a terminal, repeated seldom elsewhere."""

    def __init__(self, out: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self.out, self.now = out, now
        self.live = out.isatty()
        self.last = now()

    def line(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        print(text, file=self.out, flush=True)
        self.last = self.now()

    def status(self, text: str) -> None:
        """What is going on now."""
        if self.live:
            columns = os.get_terminal_size(self.out.fileno()).columns or 80  # 0 where nobody set it
            print(f"\r\x1b[2K{text[: columns - 1]}", end="", file=self.out, flush=True)
        elif text and self.now() - self.last > QUIET_SECONDS:
            self.line(text)

    def clear(self) -> None:
        """Take the status line away."""
        if self.live:
            print("\r\x1b[2K", end="", file=self.out, flush=True)
