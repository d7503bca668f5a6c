"""The declared file: its own words pass, every other word is named."""

from pathlib import Path

import pytest
import yaml

from isotrace.dynamics.declared import claims, families
from isotrace.errors import ConfigError

DECLARED = yaml.safe_load((Path(__file__).parents[2] / "config" / "claims.yaml").read_text(encoding="utf-8"))
CLAIM = {
    "claim": "peak",
    "sentence": "It peaks.",
    "source": "isotrace",
    "measure": "energy.ratio",
    "where": {"quantity": "gradient", "basis": "fixed"},
    "reduce": [{"geometric_mean": ["bucket"]}, {"max": ["site", "checkpoint"]}],
    "expected": "> 10",
}


def test_committed_file_is_valid_and_names_are_unique():
    found = claims(DECLARED)
    assert len({claim.claim for claim in found}) == len(found) > 15
    assert families(DECLARED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reduce": [{"median": ["bucket"]}]}, "claims.peak.reduce\\[0\\]: aggregate: 'median' is not one of"),
        ({"measure": "energy.share"}, "claims.peak.measure: 'energy.share'"),
        ({"expected": "about 10"}, "claims.peak.expected"),
        ({"select": {"sites": "middle"}}, "claims.peak.select.sites: 'middle'"),
        ({"where": {"basis": "fixed", "colour": "red"}}, "'colour' is not one of"),
        ({"where": {"basis": "fixed"}}, "\\['quantity'\\] of energy.ratio must be reduced over"),
        ({"models": {"size": "big"}}, "claims.peak.models: key: 'size'"),
        ({"compare": "difference"}, "right need each other"),
        ({"source": "hearsay"}, "claims.peak.source"),
        ({"surplus": 1}, "claims\\[0\\]: key: 'surplus'"),
        ({"reduce": [{"max": ["bucket", "site", "checkpoint", "bucket"]}]}, "bucket is reduced over twice"),
    ],
)
def test_unknown_words_are_named(change, message):
    with pytest.raises(ConfigError, match=message):
        claims({"claims": [CLAIM | change]})


def test_missing_and_doubled_claims():
    with pytest.raises(ConfigError, match="declared 2 times"):
        claims({"claims": [CLAIM, CLAIM]})
    with pytest.raises(ConfigError, match=r"claims\[0\]\.expected: missing"):
        claims({"claims": [{k: v for k, v in CLAIM.items() if k != "expected"}]})


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"measure": "energy.ratio", "where": {"quantity": "gradient"}, "tests": ["trend"]}, "basis"),
        (
            {"measure": "geometry.value", "where": {"quantity": "activation", "metric": "loss"}, "tests": ["guess"]},
            "guess",
        ),
        (
            {
                "measure": "geometry.value",
                "where": {"quantity": "activation", "metric": "loss"},
                "tests": ["correlation"],
            },
            "against",
        ),
    ],
)
def test_wrong_families_are_named(family, message):
    with pytest.raises(ConfigError, match=f"families.f.*{message}"):
        families({"families": {"f": family}})


def test_bounds_are_met_or_not():
    bound = claims({"claims": [CLAIM | {"expected": "<= 0"}]})[0].expected
    assert [bound.holds(v) for v in (-1, 0, 1)] == [True, True, False]
