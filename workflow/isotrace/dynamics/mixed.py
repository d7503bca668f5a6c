"""Slope of a quantity over training, and its dependence on the bucket, over many runs.

Laird and Ware 1982, level and slope random by run; a singular fit is no result (our rule): least squares stands in.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

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


def _coefficients(fit: object, alpha: float) -> tuple[Coefficient, ...]:
    interval = fit.conf_int(alpha)  # type: ignore[attr-defined]
    names = [n for n in fit.params.index if n == "x" or n.startswith("x:")]  # type: ignore[attr-defined]
    return tuple(
        Coefficient(
            name.replace("x", "slope", 1),
            float(fit.params[name]),  # type: ignore[attr-defined]
            float(interval.loc[name].iloc[0]),
            float(interval.loc[name].iloc[1]),
            float(fit.pvalues[name]),  # type: ignore[attr-defined]
        )
        for name in names
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
    some 40 % of the time at the 5 % level. Below ten runs there is no fit: standard errors clustered by run would
    be far too small. A singular mixed fit
    can report convergence beside a slope of the wrong sign, so that least squares with standard errors
    clustered by run replaces it, and the note says why.
    """
    runs = frame["run"].nunique()
    if runs < MIN_RUNS:
        return MixedFit((), "none", f"{runs} runs: a mixed model needs {MIN_RUNS}", runs)
    import statsmodels.formula.api as smf

    formula = FORMULA if frame["bucket"].nunique() > 1 else "value ~ x"
    alpha = 1 - confidence
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = smf.mixedlm(formula, frame, groups=frame["run"], re_formula="~x").fit(reml=True)
            problem = singular(fit, caught)
        except np.linalg.LinAlgError as error:
            problem = str(error)
    if not problem:
        return MixedFit(_coefficients(fit, alpha), "mixed model, random intercept and slope a run", "", runs)
    codes = frame["run"].astype("category").cat.codes
    plain = smf.ols(formula, frame).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    method = "least squares, standard errors clustered by run"
    return MixedFit(_coefficients(plain, alpha), method, f"mixed model not used: {problem}", runs)
