"""The loss of a training step: cross-entropy, with smoothed labels and a term for isotropy where a study asks for them.

Szegedy et al. 2016 (label smoothing); Rudman and Eickhoff 2024 (I-STAR), here of one site and one batch, our choice.
"""

from typing import TYPE_CHECKING, Any

from isotrace.corpus.sample import IGNORED
from isotrace.errors import ConfigError

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class TrainingLoss:
    """``loss(inputs, labels)`` of a model in train mode, nats a target; what a training differentiates.

    spec: ``objective``; ``label_smoothing``; ``isotropy_weight`` w, ``isotropy_shrinkage`` z and ``isotropy_site``:
    the loss gains w (1 - IsoScore*) of the site's rows in this batch. ConfigError for a site that the model lacks.
    """

    def __init__(self, model: "torch.nn.Module", spec: dict[str, Any]) -> None:
        self.model, self.spec = model, spec
        # A decoder would otherwise build a key-value cache that training never reads.
        self._options = {"use_cache": False} if getattr(model.config, "use_cache", False) else {}
        self._rows: Tensor | None = None
        if spec["isotropy_weight"]:
            _site(model, spec["isotropy_site"]).register_forward_hook(self._note)
        if hasattr(model, "sparse_prediction"):
            # ModernBERT: the head on masked positions only, the same loss in 0.6 of the time.
            model.sparse_prediction = not spec["label_smoothing"]  # type: ignore[assignment]

    def __call__(self, inputs: "Tensor", labels: "Tensor") -> "Tensor":
        """A scalar; inputs and labels (batch, T) as transformers takes them, -100 for no target."""
        output = self.model(input_ids=inputs, labels=labels, **self._options)
        loss: Tensor = output.loss
        if self.spec["label_smoothing"]:
            loss = smoothed(output.logits, labels, self.spec["label_smoothing"], shift=self.spec["objective"] == "clm")
        if self._rows is not None:
            score = isoscore_star(self._rows, self.spec["isotropy_shrinkage"])
            loss = loss + self.spec["isotropy_weight"] * (1 - score)
        return loss

    def _note(self, _module: "torch.nn.Module", _given: Any, output: Any) -> None:
        from isotrace.capture.sites import returned

        stream = returned(output)
        self._rows = None if stream is None else stream.flatten(0, -2)


def _site(model: "torch.nn.Module", name: str) -> "torch.nn.Module":
    from isotrace.capture.sites import find_sites

    sites = find_sites(model)
    if name not in sites:
        raise ConfigError(f"isotropy_site: {name!r} is not a site of this model; it has {', '.join(sites)}")
    return sites[name]


def smoothed(logits: "Tensor", labels: "Tensor", smoothing: float, *, shift: bool) -> "Tensor":
    """Mean cross-entropy, nats, against labels of which ``smoothing`` is spread evenly over the vocabulary.

    logits (batch, T, V), labels (batch, T); ``shift``: position t predicts the label of t + 1.
    """
    from torch.nn.functional import cross_entropy

    scores, targets = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
    return cross_entropy(
        scores.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, label_smoothing=smoothing
    )


def isoscore_star(rows: "Tensor", shrinkage: float) -> "Tensor":
    """IsoScore* of rows (n, d), differentiable: that of `isotrace.geometry.isotropy` with c0 ``scaled_identity``."""
    values = rows.double()
    n, d = values.shape
    centred = values - values.mean(0)
    covariance = centred.T @ centred / (n - 1)
    trace = covariance.diagonal().sum()
    # tr and ||.||_F^2 of (1 - z) C + z (tr C / d) I: the trace stays.
    frobenius = (1 - shrinkage) ** 2 * covariance.square().sum() + shrinkage * (2 - shrinkage) * trace**2 / d
    return (trace**2 / frobenius - 1) / (d - 1)
