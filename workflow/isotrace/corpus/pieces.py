"""What a token id reads like: the tokenizer's decoded piece as printable text, for labels only.

Ids stay the key of every join, since several of them may decode to one text; escapes are our choice.
"""

from collections.abc import Iterable
from pathlib import Path

from isotrace.corpus.tokenizer import load_tokenizer


def pieces(tokenizer: Path, ids: Iterable[int]) -> dict[int, str]:
    """Printable text by token id; ``tokenizer`` is the file by which the tokenizer is known.

    An id that is part of a character, or that no decoder turns into text, keeps the name its vocabulary gives it.
    """
    from tokenizers import Tokenizer

    folder = tokenizer.parent
    file = folder / "tokenizer.json"
    # Reading the file itself spares the import of transformers, which takes longer than all else here.
    backend = Tokenizer.from_file(str(file)) if file.is_file() else None
    if backend is None:
        slow = load_tokenizer(folder)
        return {i: printable(slow.decode([i]), slow.convert_ids_to_tokens(i) or "") for i in ids}
    return {i: printable(backend.decode([i], skip_special_tokens=False), backend.id_to_token(i) or "") for i in ids}


def printable(text: str, name: str) -> str:
    """``text`` with every unprintable character escaped; ``name`` where the text is empty or no whole character."""
    shown = name if not text or "\ufffd" in text else text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
