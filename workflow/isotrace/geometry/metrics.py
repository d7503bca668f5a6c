"""The registry of companion measures: a name in the config to a function of a Cloud.

Each measure's paper is named in its own module; add one with ``@metric("name")`` on a function here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from isotrace.geometry import cosine, dimension, spectrum
from isotrace.geometry.cloud import Cloud
from isotrace.geometry.rows import Quantity
from isotrace.geometry.undefined import Undefined

Measure = Callable[[Cloud], float]
Reads = Literal["rows", "paired", "loss", "displacement"]


@dataclass(frozen=True)
class Metric:
    """A registered measure: what it reads, for which quantities, and how dear its interval is.

    reads ``paired``: rows with, of gradients, the activations at the same positions.
    interval: ``yes`` at any width, ``narrow`` up to d = 512 (an eigendecomposition a group), ``no``.
    """

    measure: Measure
    of: tuple[Quantity, ...]
    reads: Reads
    interval: Literal["yes", "narrow", "no"]


METRICS: dict[str, Metric] = {}


def metric(
    name: str,
    *,
    of: tuple[Quantity, ...] = get_args(Quantity),
    reads: Reads = "rows",
    interval: Literal["yes", "narrow", "no"] = "yes",
) -> Callable[[Measure], Measure]:
    """Register a function of a Cloud under the name that the config and the table use."""

    def register(measure: Measure) -> Measure:
        METRICS[name] = Metric(measure, of, reads, interval)
        return measure

    return register


@metric("mean_cosine")
def _mean_cosine(cloud: Cloud) -> float:
    return cosine.mean_cosine(cloud.values)


@metric("mean_cosine_centred")
def _mean_cosine_centred(cloud: Cloud) -> float:
    return cosine.mean_cosine_centred(cloud.values)


@metric("angular_distance", interval="no")
def _angular_distance(cloud: Cloud) -> float:
    return cosine.angular_distance(cloud.values, max_rows=cloud.max_rows, seed=cloud.seed)


@metric("sigma1_share", interval="narrow")
def _sigma1_share(cloud: Cloud) -> float:
    return spectrum.sigma1_share(cloud.moment_spectrum)


@metric("sigma1_share_centred", interval="narrow")
def _sigma1_share_centred(cloud: Cloud) -> float:
    return spectrum.sigma1_share(cloud.covariance_spectrum)


@metric("rankme", interval="narrow")
def _rankme(cloud: Cloud) -> float:
    return spectrum.rank_me(cloud.moment_spectrum)


@metric("spectral_entropy_rank", interval="narrow")
def _spectral_entropy_rank(cloud: Cloud) -> float:
    return spectrum.spectral_entropy_rank(cloud.covariance_spectrum)


@metric("alpha_req", interval="narrow")
def _alpha_req(cloud: Cloud) -> float:
    return spectrum.alpha_req(cloud.covariance_spectrum)


@metric("participation_ratio", interval="narrow")
def _participation_ratio(cloud: Cloud) -> float:
    return spectrum.participation_ratio(cloud.covariance_spectrum)


@metric("partition_ratio", interval="no")
def _partition_ratio(cloud: Cloud) -> float:
    return spectrum.partition_ratio(cloud.values, cloud.moment_eigen[1])


@metric("twonn", interval="no")
def _twonn(cloud: Cloud) -> float:
    return dimension.twonn(cloud.values, max_rows=cloud.max_rows, seed=cloud.seed)


@metric("mean_norm")
def _mean_norm(cloud: Cloud) -> float:
    return cosine.mean_norm(cloud.values)


@metric("norm_drift")
def _norm_drift(cloud: Cloud) -> float:
    return cosine.norm_drift(cloud.values)


@metric("max_over_median_norm", interval="no")
def _max_over_median_norm(cloud: Cloud) -> float:
    return cosine.max_over_median_norm(cloud.values)


@metric("zero_rows", of=("gradient",), interval="no")
def _zero_rows(cloud: Cloud) -> float:
    return float(cloud.zero_rows)


@metric("loss", of=("activation",), reads="loss")
def _loss(cloud: Cloud) -> float:
    return float(cloud.values.mean())


@metric("contact_exponent", reads="paired", interval="no")
def _contact_exponent(cloud: Cloud) -> float:
    if cloud.places is None:
        return cloud.contact.order.stated()
    return cloud.gradient_contact.ratio.stated()


@metric("gradient_order_tangent", of=("gradient",), reads="paired", interval="no")
def _gradient_order_tangent(cloud: Cloud) -> float:
    return cloud.gradient_contact.tangent.stated()


@metric("gradient_order_normal", of=("gradient",), reads="paired", interval="no")
def _gradient_order_normal(cloud: Cloud) -> float:
    return cloud.gradient_contact.normal.stated()


@metric("curvature_visibility", of=("activation",), reads="paired", interval="no")
def _curvature_visibility(cloud: Cloud) -> float:
    return cloud.contact.visibility.stated()


@metric("displacement_in_tangent", of=("activation",), reads="displacement")
def _displacement_in_tangent(cloud: Cloud) -> float:
    if cloud.tangent is None:
        raise Undefined(cloud.tangent_missing)
    total = float(np.sum(cloud.values**2))
    if total == 0:
        raise Undefined("the two checkpoints hold the same rows")
    return float(np.sum((cloud.values @ cloud.tangent) ** 2) / total)
