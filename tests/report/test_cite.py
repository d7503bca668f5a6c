"""How to cite: the software and the papers of CITATION.cff, each with what it defines."""

import yaml

from configs import ROOT
from isotrace.report.cite import references


def test_the_software_first_then_each_paper():
    lines = references(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")))
    assert lines[0].startswith("The isotrace authors. isotrace: ")
    assert lines[1].startswith("Bernas, Jourdan, Poché, Hudelot (2026). Revisiting Anisotropy")
    assert "arXiv:2604.08764. Tangent subspace" in lines[1]
    assert lines[2].startswith("Nathan Godey, Éric de la Clergerie, Benoît Sagot (2024). ")
    assert len(lines) == 3
