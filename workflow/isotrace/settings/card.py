"""Config block for the card and `isotrace check`: how far each measure may go before somebody should look."""

from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import model_validator

from isotrace.errors import ConfigError
from isotrace.settings.base import Block, key


class Threshold(Block):
    """Two limits of one measure."""

    watch: float = key(..., "beyond this: watch")
    alarm: float = key(..., "beyond this: alarm, and exit code 1 of `isotrace check`")


class Thresholds(Block):
    """Limits of each measure at the newest checkpoint; the defaults are our choice, see docs/methods.md."""

    mean_cosine: Threshold = key(Threshold(watch=0.5, alarm=0.8), "mean cosine after the final norm, from below")
    isotropy: Threshold = key(Threshold(watch=0.02, alarm=0.01), "corrected isotropy of activations, from above")
    norm_drift: Threshold = key(Threshold(watch=0.7, alarm=0.9), "norm of the mean over the mean norm, from below")
    outlier_norm: Threshold = key(Threshold(watch=5.0, alarm=20.0), "largest over median norm of rows, from below")
    late_energy: Threshold = key(
        Threshold(watch=1.0, alarm=2.0), "gradient energy ratio over the highest of early training, from below"
    )
    attention_drift: Threshold = key(Threshold(watch=0.8, alarm=0.95), "drift of queries and keys, from below")
    sharpness: Threshold = key(Threshold(watch=0.8, alarm=0.95), "sharpness of attention, from below")
    frequency_bias: Threshold = key(
        Threshold(watch=0.8, alarm=0.95), "rank correlation of frequency with norm or distance, without its sign"
    )

    @model_validator(mode="after")
    def _check(self) -> "Thresholds":
        for name in type(self).model_fields:
            limits: Threshold = getattr(self, name)
            falling = name == "isotropy"
            if (limits.alarm > limits.watch) if falling else (limits.alarm < limits.watch):
                side = "above" if falling else "below"
                raise ValueError(f"{name}: alarm {limits.alarm:g} lies {side} watch {limits.watch:g}; swap them")
        return self


class Causes(Block):
    """From where on a cause of a narrow cloud is called likely."""

    mean_share: float = key(0.5, "mean direction: share of the mean cosine that centring takes away", gt=0, le=1)
    outlier_share: float = key(
        0.5, "outlier dimensions: share of the activations' energy ratio that goes with them", gt=0, le=1
    )
    bucket_gap: float = key(0.2, "frequency: difference of mean cosine, most frequent against rarest bucket", gt=0)
    attention_drift: float = key(0.7, "attention drift: of queries and keys, at the layer where it is largest", gt=0)


class Card(Block):
    """What the card (`results/card/MODEL.html`) and `isotrace check` judge by."""

    thresholds: Thresholds = key(Thresholds(), Thresholds.__doc__ or "")
    causes: Causes = key(Causes(), Causes.__doc__ or "")


def check_scores(scores: Mapping[str, str], models: Collection[str]) -> None:
    """ConfigError where scores are of no model, or their file is not there."""
    for name, path in scores.items():
        if name not in models:
            raise ConfigError(f"scores.{name}: not among the models {', '.join(sorted(models))}")
        if not Path(path).is_file():
            raise ConfigError(f"scores.{name}: no file {path}; a CSV with the column step and one a metric")
