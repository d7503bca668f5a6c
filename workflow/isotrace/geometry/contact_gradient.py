"""Orders of the gradient's tangent and normal parts in the distance from a base point: t and t^2 if as published.

Bernas et al. 2026 bound |g_T| by O(t) and |g_N| by O(t^2); intercepts, controls and the ratio are our choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.contact import Law, contact, fit_law, medoid
from isotrace.geometry.contact_controls import (
    CONTROLS,
    TOLERANCE,
    Verdict,
    check_tangent,
    nearest_order,
    off_by,
    spread,
    window_size,
)
from isotrace.geometry.undefined import Undefined
from isotrace.seeding import generator

Float = NDArray[np.float64]

PUBLISHED = {"tangent": 1, "normal": 2}
NOTHING = float("nan")
SMALLEST_ORDER = 0.01


@dataclass(frozen=True)
class GradientContact:
    """Orders of |g_T| and |g_N| in t, and normal over tangent order: 2 as published, 1 where both fall alike."""

    tangent: Verdict
    normal: Verdict
    ratio: Verdict


def gradient_contact(
    activations: Float, gradients: Float, *, rank: int, seed: int, base: int | None = None
) -> GradientContact:
    """Orders of ``gradients`` (n, d) along and off the tangent of ``activations`` (n, d) at row ``base``, the medoid.

    |g|^2 = offset^2 + (coefficient * t^order)^2 over the window of the activations' contact. An order is stated
    only where controls on the same t, with the fitted offset and the rows' own scatter about the law, come out
    within 0.2 (root mean square): of the published order and of the whole number nearest to what was found;
    the ratio only where both are, and controls of ratio 2 come out within 0.2.
    """
    at = medoid(activations) if base is None else base
    try:
        found = contact(activations, rank=rank, neighbours=window_size(len(activations), rank), base=activations[at])
        check_tangent(found)
    except Undefined as undefined:
        return GradientContact(*(Verdict(NOTHING, str(undefined)) for _ in range(3)))
    inside = gradients[found.rows] @ found.basis
    parts = {"tangent": inside, "normal": gradients[found.rows] - inside @ found.basis.T}
    sizes = {part: np.linalg.norm(rows, axis=1) for part, rows in parts.items()}
    usable = (sizes["tangent"] > 0) & (sizes["normal"] > 0)
    if int(usable.sum()) < 9:
        return GradientContact(*(Verdict(NOTHING, "too few non-zero gradients") for _ in range(3)))
    t = found.tangent[usable]
    laws = {part: fit_law(t, size[usable]) for part, size in sizes.items()}
    again = {part: _controls(t, sizes[part][usable], laws[part], PUBLISHED[part], part, seed) for part in laws}
    tangent, normal = (_order(t, sizes[part][usable], laws[part], again[part], part, seed) for part in PUBLISHED)
    ratios = again["normal"] / np.maximum(again["tangent"], SMALLEST_ORDER)
    return GradientContact(tangent, normal, _ratio(tangent, normal, ratios))


def _controls(t: Float, size: Float, law: Law, order: int, part: str, seed: int) -> Float:
    """Orders found (B,) where ``order`` is planted: the law's offset and height, the rows' scatter dealt anew."""
    random = generator(seed, "gradient_control", part, order)
    scatter = size / law.at(t)
    scatter = scatter / np.sqrt(np.mean(scatter**2))
    scale = float(np.sqrt(np.mean(t**2)))
    planted = Law(order, law.offset, law.coefficient * scale ** (law.order - order), 0.0)
    found = [fit_law(t, planted.at(t) * scatter[random.integers(len(t), size=len(t))]) for _ in range(CONTROLS)]
    return np.array([control.order for control in found])


def _order(t: Float, size: Float, law: Law, published: Float, part: str, seed: int) -> Verdict:
    try:
        nearest = nearest_order(law.order)
    except Undefined as undefined:
        return Verdict(NOTHING, str(undefined))
    for order in dict.fromkeys((PUBLISHED[part], nearest)):
        again = published if order == PUBLISHED[part] else _controls(t, size, law, order, part, seed)
        if not off_by(again, order) <= TOLERANCE:
            return Verdict(NOTHING, f"undecided: the controls of order {order} gave {spread(again)}")
    return Verdict(law.order, "")


def _ratio(tangent: Verdict, normal: Verdict, controls: Float) -> Verdict:
    reason = tangent.reason or normal.reason
    if not reason and not off_by(controls, 2.0) <= TOLERANCE:
        reason = f"undecided: the controls of ratio 2 gave {spread(controls)}"
    return Verdict(NOTHING, reason) if reason else Verdict(normal.value / tangent.value, "")
