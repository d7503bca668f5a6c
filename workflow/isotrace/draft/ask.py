"""Questions in a terminal, and what stands for their answers where nobody can be asked (our choice)."""

from collections.abc import Callable, Sequence

from isotrace.errors import ConfigError


class Asker:
    """Asks through ``read`` (a prompt in, a line out); with None nothing is asked and defaults are taken."""

    def __init__(self, read: Callable[[str], str] | None) -> None:
        self.read = read

    def answer(self, question: str, *, flag: str, default: str | None = None, allowed: Sequence[str] = ()) -> str:
        """One line, asked again until it is allowed; ConfigError naming the flag where there is no answer."""
        if self.read is None:
            if default is None:
                raise ConfigError(f"new: give {flag} ({question[:1].lower()}{question[1:]})")
            return default
        while True:
            try:
                given = self.read(f"{question}{f' [{default}]' if default else ''}: ").strip() or (default or "")
            except EOFError:
                raise ConfigError(f"new: no answer to {question!r}; give {flag}") from None
            if given in allowed or (given and not allowed) or (default == "" and not given):
                return given
