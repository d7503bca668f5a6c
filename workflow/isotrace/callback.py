"""Anisotropy while a model is being trained: a callback for transformers' Trainer, and a hook for a plain loop.

What is measured, and that it equals the workflow's numbers, is in ``capture.probe``; when, is our choice.
"""

from collections.abc import Callable
from typing import Any

from torch import nn
from transformers import TrainerCallback

from isotrace.capture.probe import Probe
from isotrace.errors import ConfigError

Log = Callable[[dict[str, float]], None]


class IsotropyCallback(TrainerCallback):  # type: ignore[misc]
    """Measure every ``every`` steps, the untrained model too, and give it to ``log``, usually the Trainer's own.

    Names are ``isotrace/{measure}/{site}``. Measured on the main process only, on the unwrapped model.

        trainer.add_callback(IsotropyCallback(probe, trainer.log, every=100))

    The Trainer's ``log`` reaches whatever it reports to; a callback's ``on_log`` would come after those.
    """

    def __init__(self, probe: Probe, log: Log, *, every: int = 100) -> None:
        self._hook = every_steps(probe, log, every=every)

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure the untrained model, or that from which a resumed run starts if its step is due."""
        self.on_step_end(args, state, control, **given)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure where it is due."""
        if state.is_world_process_zero:
            self._hook(given["model"], state.global_step)


def every_steps(probe: Probe, log: Log, *, every: int = 100) -> Callable[[nn.Module, int], bool]:
    """A function (model, step) for a plain training loop: measures every ``every`` steps and calls ``log``.

    It returns whether it did; step 0 counts. ConfigError for ``every`` below 1.

        hook = every_steps(probe, writer.log, every=100)
        for step, batch in enumerate(loader):
            hook(model, step)
    """
    if every < 1:
        raise ConfigError(f"every: {every} is not 1 or more steps")

    def hook(model: nn.Module, step: int) -> bool:
        if step % every:
            return False
        log({f"isotrace/{name}": value for name, value in probe.measure(_unwrapped(model)).items()})
        return True

    return hook


def _unwrapped(model: Any) -> Any:
    """The model inside of wrappers for data-parallel training or compilation."""
    for name in ("module", "_orig_mod"):
        inner = getattr(model, name, None)
        if isinstance(inner, nn.Module):
            return _unwrapped(inner)
    return model
