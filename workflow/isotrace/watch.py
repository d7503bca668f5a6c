"""Analyse the checkpoints of a run that is still going on, as they appear.

Each round is the workflow itself, so its numbers are those of a run over the finished series (our choice).
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from isotrace.errors import ConfigError
from isotrace.settings.sources import Local
from isotrace.study import Study

Sizes = Mapping[str, tuple[int, int]]
"""Of every checkpoint folder by its path: the bytes in it, and when it was last written to, in nanoseconds."""


def watched(study: Study) -> list[str]:
    """The models of a study whose folders may grow; ConfigError where there are none, or one has no ``total_steps``.

    Without it progress would be a share of the last checkpoint so far, and early and late would move with each.
    """
    found = [name for name, model in study.models.items() if isinstance(model.source, Local)]
    if not found:
        raise ConfigError("watch: no model of this config has `source.kind: local`, so no folder can grow")
    for name in found:
        if study.models[name].total_steps is None:
            raise ConfigError(f"models.{name}.total_steps: needed to watch a run that is not finished; set it")
    return found


def sizes(study: Study, models: list[str]) -> Sizes:
    """What lies in the folders of every checkpoint now."""
    return {found.path: _of(Path(found.path)) for model in models for found in study.series[model].found}


def _of(folder: Path) -> tuple[int, int]:
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(s.st_size for s in stats), max((s.st_mtime_ns for s in stats), default=0)


def watch(
    study: Study,
    load: Callable[[], Study],
    analyse: Callable[[], int],
    *,
    every: float,
    until: int | None,
    tell: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Analyse whenever a checkpoint is new and nothing was written since the last look; returns the last exit code.

    ``study`` is the config by itself, ``load`` reads it again with what lies on disk, ``analyse`` runs it; looks are
    ``every`` seconds apart. Ends once a checkpoint at or beyond step ``until`` of every model was analysed; None goes
    on for ever. Checkpoints that are too few yet for early bases are told of once and waited for.
    """
    models = watched(study)
    before: Sizes | None = None
    done: Sizes = {}
    said, code = "", 0
    while True:
        try:
            series = load()
            now: Sizes = sizes(series, models)
        except ConfigError as error:
            if str(error) != said:
                tell(f"waiting: {error}")
            said, before = str(error), None
            pause(every)
            continue
        if now == before and now != done:
            new = sorted(set(now) - set(done)) or sorted(now)
            tell(f"{len(new)} new or changed: {', '.join(Path(path).name for path in new)}")
            code, done = analyse(), now
        if now == done and until is not None and all(series.series[m].found[-1].step >= until for m in models):
            return code
        before = now
        pause(every)
