"""One untrained block fed with Gaussian inputs that share a bias: how much more alike are its outputs?

Godey, de la Clergerie, Sagot 2024 (random blocks over the scale of queries and keys); the order of the block's parts,
attention, residual, norm, MLP, is our choice.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.seeding import generator

Float = NDArray[np.float64]
COMPONENTS = ("input", "attention", "residual", "norm", "mlp")
PAIRS = ("within", "across")
NO_FORMULA = "no closed form after the {component}"
SHARP = "no closed form but for uniform attention (qk_scale 0)"


def inputs(cosine: float, *, sequences: int, tokens: int, width: int, rng: np.random.Generator) -> Float:
    """Rows mu + sigma z (S, T, d), z standard normal, |mu|^2 + sigma^2 d = d, so that their expected cosine is
    |mu|^2 / (|mu|^2 + sigma^2 d) = ``cosine`` up to terms in 1/d."""
    direction = rng.standard_normal(width)
    bias = direction / np.linalg.norm(direction) * np.sqrt(cosine * width)
    noise: Float = rng.standard_normal((sequences, tokens, width)) * np.sqrt(1 - cosine)
    return np.asarray(bias + noise)


def block(x: Float, *, heads: int, qk_scale: float, rng: np.random.Generator) -> dict[str, Float]:
    """What a random block makes of x (S, T, d), by component: (S, T, d) each.

    Every matrix has entries of variance 1 / (its inputs). Logits are qk_scale times <q, k> / sqrt(d_h), over all T
    tokens of a sequence; scale 0 is uniform attention. attention: its output; residual: added to x; norm: layer norm of
    that; mlp: that plus a GELU network of width 4d.
    """
    d = x.shape[2]
    query, key, value, out = (_matrix(rng, d, d) for _ in range(4))
    up, down = _matrix(rng, d, 4 * d), _matrix(rng, 4 * d, d)
    attention = _attend(x @ query, x @ key, x @ value, heads, qk_scale) @ out
    residual = x + attention
    norm = _normed(residual)
    return {"attention": attention, "residual": residual, "norm": norm, "mlp": norm + _gelu(norm @ up) @ down}


def cosines(x: Float) -> dict[str, float]:
    """Mean cosine of rows (S, T, d) over pairs in the same sequence, and over pairs in different ones; exact."""
    s, t, _ = x.shape
    unit = x / np.linalg.norm(x, axis=2, keepdims=True)
    sums = unit.sum(axis=1)  # (S, d)
    inside = float(np.square(sums).sum())
    total = float(np.square(sums.sum(axis=0)).sum())
    return {"within": (inside - s * t) / (s * t * (t - 1)), "across": (total - inside) / (s * (s - 1) * t * t)}


def expected(component: str, pairs: str, *, cosine: float, qk_scale: float, tokens: int) -> float:
    """The cosine that theory gives for wide blocks, NaN where there is no closed form.

    Inputs: ``cosine``. Uniform attention gives all tokens of a sequence one output (within: 1), the image of their
    mean, whose noise has variance sigma^2 / T: across sequences c / (c + (1 - c) / T).
    """
    if component == "input":
        return cosine
    if component != "attention" or qk_scale != 0:
        return np.nan
    return 1.0 if pairs == "within" else cosine / (cosine + (1 - cosine) / tokens)


def toy_table(spec: Mapping[str, Any]) -> pd.DataFrame:
    """One row per input cosine, scale, component and kind of pairs: mean over seeds with Student's interval.

    spec: width, heads, tokens, sequences, input_cosines, qk_scales, seeds (how many), seed, confidence.
    """
    runs = pd.DataFrame(_measured(spec))
    keys = ["input_cosine", "qk_scale", "component", "pairs"]
    rows = []
    for key, part in runs.groupby(keys, sort=False):
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        value, lo, hi = _over_seeds(part["cosine"].to_numpy(float), spec["confidence"])
        theory = expected(
            row["component"], row["pairs"], cosine=row["input_cosine"], qk_scale=row["qk_scale"], tokens=spec["tokens"]
        )
        rows.append(row | {"cosine": value, "lo": lo, "hi": hi, "expected": theory, "n_seeds": len(part)})
    table = pd.DataFrame(rows)
    return table.assign(reason=[_reason(row) for row in table.to_dict("records")])


def _over_seeds(values: Float, confidence: float) -> tuple[float, float, float]:
    """Mean of values (n,), n at least 2, and Student's interval of it."""
    from scipy.special import stdtrit

    mean, n = float(values.mean()), values.size
    half = float(stdtrit(n - 1, 0.5 + confidence / 2) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def _reason(row: dict[Any, Any]) -> str:
    if np.isfinite(row["expected"]):
        return ""
    return SHARP if row["component"] == "attention" else NO_FORMULA.format(component=row["component"])


def _measured(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row a seed. Weights and noise of a seed are the same at every cosine and scale: only those two differ."""
    shape = {name: spec[name] for name in ("sequences", "tokens", "width")}
    for cosine, seed in product(spec["input_cosines"], range(spec["seeds"])):
        x = inputs(cosine, **shape, rng=generator(spec["seed"], "toy", "inputs", seed))
        for scale in spec["qk_scales"]:
            rng = generator(spec["seed"], "toy", "weights", seed)
            outputs = {"input": x} | block(x, heads=spec["heads"], qk_scale=scale, rng=rng)
            for component in COMPONENTS:
                for pairs, value in cosines(outputs[component]).items():
                    key = {"input_cosine": cosine, "qk_scale": scale, "component": component, "pairs": pairs}
                    yield key | {"cosine": value}


def _matrix(rng: np.random.Generator, rows: int, columns: int) -> Float:
    matrix: Float = rng.standard_normal((rows, columns)) / np.sqrt(rows)
    return matrix


def _attend(query: Float, key: Float, value: Float, heads: int, scale: float) -> Float:
    """Softmax attention over all tokens; (S, T, d) each, d split into heads."""
    s, t, d = query.shape
    q, k, v = (m.reshape(s, t, heads, d // heads).transpose(0, 2, 1, 3) for m in (query, key, value))  # (S, H, T, d_h)
    logits = scale * (q @ k.swapaxes(2, 3)) / np.sqrt(d // heads)
    weights = np.exp(logits - logits.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    read: Float = (weights @ v).transpose(0, 2, 1, 3).reshape(s, t, d)  # (S, H, T, d_h) -> (S, T, d)
    return read


def _normed(x: Float) -> Float:
    centred = x - x.mean(axis=2, keepdims=True)
    normed: Float = centred / np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + 1e-12)
    return normed


def _gelu(x: Float) -> Float:
    from scipy.special import ndtr

    return np.asarray(x * ndtr(x))
