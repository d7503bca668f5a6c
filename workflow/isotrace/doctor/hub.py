"""What fetching from the hub takes: resolved commits, a network that is not switched off, a token for gated repos."""

from collections.abc import Callable, Iterator

from isotrace.doctor.findings import Finding, fail, ok, warn
from isotrace.doctor.machine import Machine
from isotrace.settings.sources import Hub
from isotrace.study import Study


def hub(machine: Machine, study: Study, token: Callable[[], str | None]) -> Iterator[Finding]:
    """Nothing for a study without models on the hub; ``token`` gives the one that its client would send."""
    models = [name for name, model in study.models.items() if isinstance(model.source, Hub)]
    if not models:
        return
    if machine.environment.get("HF_HUB_OFFLINE", "") not in ("", "0"):
        yield fail(
            "hub", "HF_HUB_OFFLINE is set", "unset it; weights are fetched by local jobs, all others are offline"
        )
    for name in models:
        downloads = study.series[name].downloads.values()
        open_ = sum(one["commit"] is None for one in downloads)
        if open_:
            do = f"isotrace resolve {name} --configfile FILE, where there is a network; then commit the series file"
            yield fail("hub", f"{name}: {open_} of {len(downloads)} downloads have no commit yet", do)
    if token() is None:
        yield warn("hub", "no token", "only gated or private repos need one: hf auth login, or HF_TOKEN")
    else:
        yield ok("hub", f"{', '.join(models)}; a token is there")
