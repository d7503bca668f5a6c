"""How the main numbers are defined, in a formula each; docs/explanation says all of it, with what it is conditional on.
Energy and removal: Bernas et al. 2026; IsoScore: Rudman et al. 2022; cosine, drift: Godey et al. 2024."""

import html
from collections.abc import Mapping
from typing import Any

Note = tuple[str, str, str]
"""Name, formula or nothing, what it means."""


def notes(config: Mapping[str, Any]) -> str:
    """Definitions as MathML, which browsers draw without a script, with the choices of the study's config."""
    parts = [*_energy(config), *_clouds(config), _intervals(config)]
    return "<dl>" + "".join(map(_note, parts)) + "</dl>"


def _energy(config: Mapping[str, Any]) -> list[Note]:
    tests, early = config["dynamics"], config["bases"]["early_fraction"]
    space = {"complement": "outside T", "ambient": "anywhere"}[tests["null_space"]]
    draws = config["energy"]["draws"][tests["null_space"]]
    share = _over(_row(_t("tr"), "(", _sup("Q", "T"), _i("G"), _i("Q"), ")"), _row(_t("tr"), _i("G")))
    counted = _over(_row("1", "+", "#", "{", _sub("E", "N"), "≥", _i("E"), "}"), _row(_i("B"), "+", "1"))
    return [
        (
            "Tangent subspace T",
            _row(_i("Q"), "=", _t("leading"), _i("k"), _t("eigenvectors of"), _i("C")),
            f"C is the covariance of activations pooled over checkpoints up to {early:.0%} of training (fixed basis), "
            "or that of the checkpoint itself (moving basis), on sequences that nothing is measured on. "
            f"Here: {tests['method']}, k = {tests['rank']}.",
        ),
        (
            "Energy",
            _row(_i("E"), "=", share),
            "G is the second moment of the gradients of one token bucket: the share of their energy that lies in T.",
        ),
        ("Energy ratio", _ratio(tests["null_space"]), _RATIO[tests["null_space"]]),
        (
            "p-value",
            _row(_i("p"), "=", counted),
            f"Energies E_N of B = {draws} random subspaces of the same rank, {space}. It is conditional on the model "
            "and the data, and says nothing of other runs.",
        ),
    ]


def _clouds(config: Mapping[str, Any]) -> list[Note]:
    draws = config["isotropy"]["draws"]
    pairs = _row(_i("n"), "(", _i("n"), "−", "1", ")")
    cosine = _over(_row(_abs(_row("∑", _i("u"))), "²", "−", _i("n")), pairs)
    return [
        (
            "IsoScore",
            _over(_row(_sup("t", "2"), "/", _i("f"), "−", "1"), _row(_i("d"), "−", "1")),
            "t is the trace and f the squared Frobenius norm of the covariance: 1 where all d directions vary alike, "
            "0 for one direction. The estimator corrected has unbiased t² and f, and a jackknife, so that clouds of "
            f"different sizes compare. Removal scores again without T and without {draws} random subspaces.",
        ),
        (
            "Mean cosine, norm drift",
            _row(cosine, ",", _over(_abs(_bar(_i("x"))), _bar(_abs(_i("x"))))),
            "u are the n rows at length 1: the mean over all pairs of different tokens. Drift is the length of the "
            "mean over the mean length; of queries and keys it is the same.",
        ),
    ]


def _intervals(config: Mapping[str, Any]) -> Note:
    level = config["energy"]["confidence"]
    return (
        "Intervals",
        "",
        f"{level:.0%} from resampling whole sequences, or leaving out groups of them, within one run. They say how "
        "well this run's value is known. Statements about runs need at least five.",
    )


_RATIO = {
    "complement": "E over the exact mean energy of random subspaces of the same rank outside T, as odds: 1 means no "
    "more than such a subspace holds.",
    "ambient": "E over the exact mean energy of random subspaces of the same rank: 1 means no more than such a "
    "subspace holds.",
}


def _ratio(null_space: str) -> str:
    if null_space == "ambient":
        return _over(_row(_i("E"), _i("d")), _i("k"))
    above = _row(_i("E"), "(", _i("d"), "−", _i("k"), ")")
    return _over(above, _row(_i("k"), "(", "1", "−", _i("E"), ")"))


def _note(part: Note) -> str:
    name, formula, text = part
    shown = f"<div class=formula><math displaystyle='true'>{formula}</math></div>" if formula else ""
    return f"<dt>{name}</dt><dd>{shown}{html.escape(text, quote=False)}</dd>"


def _row(*parts: str) -> str:
    """Parts in a row; those that are no element yet are numbers or operators."""
    return f"<mrow>{''.join(p if p.startswith('<') else _plain(p) for p in parts)}</mrow>"


def _plain(text: str) -> str:
    return f"<mn>{text}</mn>" if text.isdigit() else f"<mo>{text}</mo>"


def _i(name: str) -> str:
    return f"<mi>{name}</mi>"


def _t(text: str) -> str:
    """Words, with spaces around that a browser keeps."""
    return f"<mtext>&#160;{text}&#160;</mtext>"


def _sup(base: str, exponent: str) -> str:
    return f"<msup><mi>{base}</mi><mi>{exponent}</mi></msup>"


def _sub(base: str, index: str) -> str:
    return f"<msub><mi>{base}</mi><mi>{index}</mi></msub>"


def _over(above: str, below: str) -> str:
    return f"<mfrac>{above}{below}</mfrac>"


def _abs(inner: str) -> str:
    return f"<mrow><mo>|</mo>{inner}<mo>|</mo></mrow>"


def _bar(inner: str) -> str:
    return f"<mover>{inner}<mo>¯</mo></mover>"
