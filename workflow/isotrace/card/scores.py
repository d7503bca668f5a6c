"""A user's own score per checkpoint: a CSV with the column `step` and a column a metric.
Our choice of format; what does not fit is named."""

from pathlib import Path

import pandas as pd

from isotrace.errors import DataError


def read_scores(path: str | Path) -> pd.DataFrame:
    """Step and one float column a metric, rising by step; an empty cell is NaN. DataError for anything else."""
    try:
        frame = pd.read_csv(path, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable CSV ({str(error).splitlines()[0]}); see scores") from None
    if "step" not in frame or len(frame.columns) < 2:
        named = ", ".join(map(str, frame.columns))
        raise DataError(f"{path}: needs the column step and one a metric, and has {named}; see scores")
    for name in frame.columns:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        wrong = frame.index[numbers.isna() & frame[name].notna()]
        if len(wrong):
            raise DataError(f"{path}: line {wrong[0] + 2}, column {name}: {frame[name][wrong[0]]!r} is no number")
        frame[name] = numbers.astype(float)
    if frame["step"].isna().any() or (frame["step"] % 1 != 0).any():
        raise DataError(f"{path}: a step is missing or no whole number; steps are those of the checkpoints")
    frame["step"] = frame["step"].astype(int)
    twice = frame["step"][frame["step"].duplicated()]
    if len(twice):
        raise DataError(f"{path}: step {twice.iloc[0]} has two rows; keep one")
    return frame.sort_values("step").reset_index(drop=True)
