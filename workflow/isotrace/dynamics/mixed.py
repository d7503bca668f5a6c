"""Slope of a quantity over training, and its dependence on the bucket, over many runs.

Laird and Ware 1982, level and slope random by run, errors clustered by run (Liang and Zeger 1986); a singular fit is
no result (our rule): least squares stands in.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MIN_RUNS = 10


@dataclass(frozen=True)
class Coefficient:
    """One fixed effect with its confidence interval and p-value."""

    name: str
    effect: float
    lo: float
    hi: float
    p_value: float


@dataclass(frozen=True)
class MixedFit:
    """Coefficients, how they were obtained, and why not otherwise; without coefficients ``note`` says why."""

    coefficients: tuple[Coefficient, ...]
    method: str
    note: str
    n: int


FORMULA = "value ~ x * bucket"


def clustered(fit: object) -> NDArray[np.float64]:
    """Covariance (p, p) of a mixed fit's fixed effects from what runs differ by, r / (r - 1) for the r runs.

    The model's own errors take what is left after a run's line for independent. Courses that wander are not: they
    would reject 10 % of the time at the 5 % level.
    """
    model = fit.model  # type: ignore[attr-defined]
    bread, scores = 0.0, []
    for x, z, y in zip(model.exog_li, model.exog_re_li, model.endog_li, strict=True):
        within = fit.scale * np.eye(len(y)) + z @ np.asarray(fit.cov_re) @ z.T  # type: ignore[attr-defined]
        weighted = np.linalg.solve(within, x)
        bread = bread + weighted.T @ x
        scores.append(weighted.T @ (y - x @ np.asarray(fit.fe_params)))  # type: ignore[attr-defined]
    meat, r = np.stack(scores), len(scores)
    half = np.linalg.solve(bread, meat.T)
    return np.asarray(half @ half.T * r / (r - 1))


def _coefficients(
    effects: pd.Series, covariance: NDArray[np.float64], runs: int, confidence: float
) -> tuple[Coefficient, ...]:
    """Slopes with Student's interval and p-value, one degree of freedom less than runs."""
    from scipy.stats import t

    errors = np.sqrt(np.diag(covariance))
    half = float(t.ppf(0.5 + confidence / 2, runs - 1))
    return tuple(
        Coefficient(
            str(name).replace("x", "slope", 1),
            float(effect),
            float(effect - half * error),
            float(effect + half * error),
            float(2 * t.sf(abs(effect) / error, runs - 1)),
        )
        for (name, effect), error in zip(effects.items(), errors, strict=True)
        if name == "x" or str(name).startswith("x:")
    )


def singular(fit: object, caught: list[warnings.WarningMessage]) -> str:
    """Why a mixed fit is no result: variance at the boundary, missing standard errors, a warning; else empty."""
    variance = float(np.linalg.eigvalsh(np.asarray(fit.cov_re))[0])  # type: ignore[attr-defined]
    scale = float(fit.scale)  # type: ignore[attr-defined]
    if not fit.converged:  # type: ignore[attr-defined]
        return "the fit did not converge"
    if not np.isfinite(variance) or variance < 1e-4 * scale:
        return "the run variance is at its boundary"
    if not all(np.isfinite(e) for e in fit.bse_fe):  # type: ignore[attr-defined]
        return "standard errors are missing"
    about = [str(w.message) for w in caught if "hessian" in str(w.message).lower() or "singular" in str(w.message)]
    return about[0] if about else ""


def slopes_over_runs(frame: pd.DataFrame, *, confidence: float) -> MixedFit:
    """Fit ``value ~ x * bucket`` with a random intercept and slope a run; frame columns run, x, bucket, value.

    A random intercept alone would take checkpoints of a run for independent: where runs only wander, it rejects
    some 40 % of the time at the 5 % level. Below ten runs there is no fit: errors clustered by run would be far too
    small. A singular mixed fit can report convergence beside a slope of the wrong sign, so that least squares
    replaces it, and the note says why.
    """
    runs = frame["run"].nunique()
    if runs < MIN_RUNS:
        return MixedFit((), "none", f"{runs} runs: a mixed model needs {MIN_RUNS}", runs)
    import statsmodels.formula.api as smf

    formula = FORMULA if frame["bucket"].nunique() > 1 else "value ~ x"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = smf.mixedlm(formula, frame, groups=frame["run"], re_formula="~x").fit(reml=True)
            problem = singular(fit, caught)
        except np.linalg.LinAlgError as error:
            problem = str(error)
    if not problem:
        found = _coefficients(fit.fe_params, clustered(fit), runs, confidence)
        return MixedFit(found, "mixed model, random intercept and slope a run; errors clustered by run", "", runs)
    codes = frame["run"].astype("category").cat.codes
    plain = smf.ols(formula, frame).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    found = _coefficients(plain.params, np.asarray(plain.cov_params()), runs, confidence)
    return MixedFit(found, "least squares, errors clustered by run", f"mixed model not used: {problem}", runs)
