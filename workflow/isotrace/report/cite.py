"""How to cite: the software and the papers whose quantities it computes, from CITATION.cff (Druskat et al. 2021)."""

from collections.abc import Mapping, Sequence
from typing import Any


def references(citation: Mapping[str, Any]) -> list[str]:
    """A line each: the software first, then the papers with what they define."""
    own = f"{_names(citation['authors'])}. {citation['title']}. Version {citation['version']}."
    return [own, *(_paper(one) for one in citation["references"])]


def _paper(paper: Mapping[str, Any]) -> str:
    where = [paper["collection-title"]] if "collection-title" in paper else []
    where += [one["value"] for one in paper.get("identifiers", [])]
    said = f" {paper['notes']}" if "notes" in paper else ""
    return f"{_names(paper['authors'])} ({paper['year']}). {paper['title']}. {', '.join(where)}.{said}"


def _names(authors: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(" ".join(filter(None, map(a.get, PARTS))) for a in authors)


PARTS = ("name", "given-names", "name-particle", "family-names")
