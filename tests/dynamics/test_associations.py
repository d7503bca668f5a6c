"""Lead and lag: the declared families tell which of two series moves first, and beside each other none does."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from made_up import SPEC, STEPS, energy

from isotrace.dynamics.table import dynamics_table

NAMES = ("gradient_leads_activation", "gradient_beside_activation", "activation_leads_gradient")
DECLARED = yaml.safe_load((Path(__file__).parents[2] / "config" / "claims.yaml").read_text(encoding="utf-8"))
FAMILIES = {"families": {name: DECLARED["families"][name] for name in NAMES}}
COURSE = np.random.default_rng(0).permutation(len(STEPS) + 1).astype(float)


def both(ahead: str) -> pd.DataFrame:
    """Ratios on one course, one checkpoint earlier for the quantity that is ahead."""
    parts = []
    for quantity in ("gradient", "activation"):
        first = 1 if quantity == ahead else 0
        course = dict(zip(STEPS, COURSE[first:], strict=False))
        rows = energy(lambda model, step, site, bucket, course=course: course[step] / 4, basis="moving")
        parts.append(rows.assign(quantity=quantity))
    return pd.concat(parts, ignore_index=True)


def effects(ahead: str) -> pd.Series:
    table = dynamics_table({"energy": both(ahead)}, FAMILIES, SPEC)
    within = table[table.unit == "sequence"]
    assert (within.groupby("family").effect.nunique() == 1).all()
    return within.groupby("family").effect.first()


@pytest.mark.parametrize(("ahead", "leads"), [("gradient", NAMES[0]), ("activation", NAMES[2])])
def test_the_family_of_the_leading_quantity_stands_out(ahead: str, leads: str) -> None:
    found = effects(ahead)
    assert found[leads] == pytest.approx(1.0)
    assert found.drop(leads).abs().max() < 0.7


def test_together_is_seen_beside_and_not_as_a_lead() -> None:
    found = effects("neither")
    assert found[NAMES[1]] == pytest.approx(1.0)
    assert found.drop(NAMES[1]).abs().max() < 0.7


def test_a_lead_uses_one_checkpoint_less() -> None:
    table = dynamics_table({"energy": both("gradient")}, FAMILIES, SPEC)
    n = table[table.unit == "sequence"].groupby("family").n.first()
    assert n[list(NAMES)].tolist() == [len(STEPS) - 1, len(STEPS), len(STEPS) - 1]
