"""Whether a cloud's contact order may be stated: planted orders on its own rows must be found again.

Bernas et al. 2026 give the orders; the controls (same n, d, tangent coordinates, noise) are our choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.contact import Contact, Law, contact, fit_law, medoid
from isotrace.geometry.curvature import curvature_excess
from isotrace.geometry.undefined import Undefined
from isotrace.seeding import generator

Float = NDArray[np.float64]

CONTROLS = 8
CONTROL_ORDERS = (1, 2, 3)
TOLERANCE = 0.2
WINDOWS_APART = 0.3
NORMALS = 3
LARGEST_GAP = 0.1


@dataclass(frozen=True)
class Verdict:
    """A value that may be stated, or NaN with the reason why it may not."""

    value: float
    reason: str

    def stated(self) -> float:
        """The value; Undefined with the reason where there is none."""
        if self.reason:
            raise Undefined(self.reason)
        return self.value


@dataclass(frozen=True)
class Stated:
    """Contact order and curvature visibility of one cloud, each with its own reason."""

    order: Verdict
    visibility: Verdict


def window_size(n: int, rank: int) -> int:
    """Rows of a window among n: a quarter, and at least a dozen a direction."""
    return max(12 * rank, n // 4)


def controlled_contact(values: Float, *, rank: int, seed: int, base: int | None = None) -> Stated:
    """Contact order of (n, d) at row ``base`` (the medoid by default), stated only where controls allow it.

    The tangent must be one: no variance off it above a tenth of the smallest along it.
    Controls are surfaces of order 1, 2 and 3 over the cloud's own tangent coordinates, as high as the fitted
    law, with noise drawn from its normal parts: half are round bowls, half random quadratic forms in three
    normal directions. Those of order 2, and of the whole number nearest to what was found, must come out
    within 0.2 (root mean square), and the inner half of the window must agree within 0.3.
    """
    at = medoid(values) if base is None else base
    neighbours = window_size(len(values), rank)
    try:
        found = contact(values, rank=rank, neighbours=neighbours, base=values[at])
        check_tangent(found)
        reason, planted = _undecided(found, at, neighbours, seed)
    except Undefined as undefined:
        return Stated(*(Verdict(float("nan"), str(undefined)) for _ in range(2)))
    order = Verdict(float("nan") if reason else found.law.order, reason)
    if not reason:
        reason = _invisible(found, planted)
    excess = float("nan") if reason else visibility(found.law, float(found.tangent[-1]))
    return Stated(order, Verdict(excess, reason))


def visibility(law: Law, reach: float) -> float:
    """Arc length over straight-line radius, minus one, at tangent distance ``reach``; 0 for a flat law."""
    if law.curvature == 0:
        return 0.0
    radius = float(np.hypot(reach, law.curvature * reach**2 / 2))
    return float(curvature_excess(law.curvature, radius))


def check_tangent(found: Contact) -> None:
    """Undefined where the rows show no tangent of this rank: its directions then mix with normal ones."""
    if not found.gap <= LARGEST_GAP:
        rank, share = found.basis.shape[1], f"{found.gap:.0%} of the last one's variance"
        raise Undefined(f"undecided: no tangent of rank {rank}, the next direction has {share}")


def off_by(found: Float, planted: float) -> float:
    """Root mean square of found (B,) minus planted: bias and scatter together."""
    return float(np.sqrt(np.mean((found - planted) ** 2)))


def spread(found: Float) -> str:
    """Mean and standard deviation of found (B,), for a reason."""
    return f"{found.mean():.2f} +- {found.std():.2f}"


def nearest_order(order: float) -> int:
    """The control order that a found order is nearest to. Undefined beyond half an order of them all."""
    if not CONTROL_ORDERS[0] - 0.5 <= order <= CONTROL_ORDERS[-1] + 0.5:
        raise Undefined(f"undecided: {order:.2f} is beyond the orders that the controls cover")
    return min(CONTROL_ORDERS, key=lambda control: abs(control - order))


def _undecided(found: Contact, at: int, neighbours: int, seed: int) -> tuple[str, list[Contact]]:
    """(why the order may not be stated or "", the controls of order 2)."""
    nearest = nearest_order(found.law.order)
    planted: list[Contact] = []
    for order in dict.fromkeys((2, nearest)):
        again = [_control(found, at, neighbours, order, seed, i) for i in range(CONTROLS)]
        planted = again if order == 2 else planted
        orders = np.array([control.law.order for control in again])
        if not off_by(orders, order) <= TOLERANCE:
            return f"undecided: the controls of order {order} gave {spread(orders)}", planted
    half = found.tangent[: len(found.rows) // 2], found.normal[: len(found.rows) // 2]
    inner = fit_law(*half).order
    if not abs(inner - found.law.order) <= WINDOWS_APART:
        return f"undecided: {found.law.order:.2f} in the window, {inner:.2f} in its inner half", planted
    return "", planted


def _invisible(found: Contact, planted: list[Contact]) -> str:
    """Why the visibility may not be stated although the order may, or ""."""
    if not abs(found.law.order - 2) <= 2 * TOLERANCE:
        return f"the contact order is {found.law.order:.2f}: no curvature to state"
    true = visibility(_height(found, 2), float(found.tangent[-1]))
    again = np.array([visibility(control.law, float(control.tangent[-1])) for control in planted])
    if not off_by(again / true, 1.0) <= TOLERANCE:
        return f"undecided: the controls gave {np.mean(again / true):.2f} of their visibility"
    return ""


def _height(found: Contact, order: int) -> Law:
    """A law of the given order that is as high as the fitted one at the window's root mean square of r_T."""
    scale = float(np.sqrt(np.mean(found.tangent**2)))
    coefficient = found.law.coefficient * scale ** (found.law.order - order)
    return Law(float(order), found.law.offset, coefficient, 2 * coefficient * scale ** (order - 2))


def _control(found: Contact, at: int, neighbours: int, order: int, seed: int, index: int) -> Contact:
    """Contact at row ``at`` of a surface of known order over the cloud's own tangent coordinates."""
    (n, d), random = found.across.shape, generator(seed, "contact_control", order, index)
    reach = np.linalg.norm(found.inside, axis=1)
    height = _height(found, order).coefficient * reach**order
    form = np.ones((n, 1)) if index % 2 == 0 else _forms(found, random)
    normals = random.normal(size=(d, form.shape[1]))
    normals = np.linalg.qr(normals - found.basis @ (found.basis.T @ normals))[0]
    surface = found.inside @ found.basis.T + (height[:, None] * form) @ normals.T
    rest = found.across[found.rows] - found.across[found.rows].mean(axis=0)
    size = float(np.sqrt(np.mean(np.sum(rest**2, axis=1))))
    # the base point carries noise as well, so half of the squared offset is each row's own
    scale = found.law.offset / (np.sqrt(2) * size) if size > 0 else 0.0
    rows = surface + scale * rest[random.integers(len(rest), size=n)]
    return contact(rows, rank=found.basis.shape[1], neighbours=neighbours, base=rows[at])


def _forms(found: Contact, random: np.random.Generator) -> Float:
    """Random quadratic forms of the direction of every row, (n, normals), of unit mean square in the window."""
    rank = found.basis.shape[1]
    reach = np.linalg.norm(found.inside, axis=1)
    unit = found.inside / np.where(reach > 0, reach, 1.0)[:, None]
    matrices = random.normal(size=(min(NORMALS, found.across.shape[1] - rank), rank, rank))
    form: Float = np.einsum("ni,jil,nl->nj", unit, matrices, unit, optimize=True)
    form /= np.sqrt(np.mean(np.sum(form[found.rows] ** 2, axis=1)))
    return form
