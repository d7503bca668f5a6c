"""Digest of the code that a rule runs: its script and every isotrace module it reaches, docstrings left out.

Snakemake never tracks imported modules; this digest stands in each rule's params instead.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


@cache
def code_digest(script: Path) -> str:
    """Sixteen hex digits that change when code reached from ``script`` does, and only then."""
    reached: dict[str, str] = {}
    _reach(script, script.name, reached)
    text = "\n".join(f"{name} {digest}" for name, digest in sorted(reached.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _reach(path: Path, name: str, reached: dict[str, str]) -> None:
    if name in reached:
        return
    reached[name], imported = _parsed(path)
    for module in imported:
        found = _module_file(module)
        if found is not None:
            _reach(found, module, reached)


@cache
def _parsed(path: Path) -> tuple[str, tuple[str, ...]]:
    """Digest of the syntax tree without docstrings, and the isotrace names it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = tuple(sorted(_imports(tree)))
    for node in ast.walk(tree):
        _drop_strings(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imported


def _drop_strings(node: ast.AST) -> None:
    """Remove docstrings and other bare strings; they change nothing that runs."""
    body = getattr(node, "body", None)
    if isinstance(body, list):
        kept = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        node.body = kept  # type: ignore[attr-defined]


def _imports(tree: ast.AST) -> set[str]:
    """Absolute isotrace modules named anywhere in the file, inside functions as well."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "isotrace"}


def _module_file(name: str) -> Path | None:
    """The file of a module, None for a package's own name or a name inside a module."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    file = path.with_suffix(".py")
    return file if file.is_file() and path != PACKAGE else None
