"""The hub's API through huggingface_hub, with patience on 429 and 5xx, and errors of one line.

The client retries most calls itself, but neither the list of refs nor a download's 5xx: here every call is retried.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from isotrace.errors import DataError

T = TypeVar("T")
TRIES = 6
BUSY = (408, 429, 500, 502, 503, 504)
LONGEST = 300.0
"""Seconds that a server may ask us to wait; its own window is five minutes."""


@dataclass(frozen=True)
class Client:
    """Calls to one hub: ``HF_ENDPOINT``, or the public one; ``pause`` is the first wait in seconds, then doubled."""

    pause: float = 1.0
    endpoint: str | None = field(default_factory=lambda: os.environ.get("HF_ENDPOINT") or None)

    def __post_init__(self) -> None:
        """No progress bars, and no word of the client's on every retry."""
        from logging import ERROR

        from huggingface_hub.utils import logging
        from huggingface_hub.utils.tqdm import disable_progress_bars

        logging.set_verbosity(ERROR)
        disable_progress_bars()

    def refs(self, repo: str) -> dict[str, str]:
        """Branches and tags of a repo with the commits they point at; a tag wins over a branch of its name."""
        refs = self._patiently(repo, lambda: self._api().list_repo_refs(repo))
        return {ref.name: ref.target_commit for ref in [*refs.branches, *refs.tags]}

    def repos(self, pattern: str) -> list[str]:
        """Names of the repos that ``ORG/NAME`` with ``{step}`` may stand for, all those that start as it does."""
        author, _, start = pattern.partition("{step}")[0].partition("/")
        models = self._patiently(pattern, lambda: list(self._api().list_models(author=author, search=start)))
        return sorted(model.id for model in models if model.id.startswith(f"{author}/{start}"))

    def files(self, repo: str, commit: str, subfolder: str | None) -> dict[str, dict[str, Any]]:
        """Files of a folder at a commit: bytes, and the sha256 of large ones; empty where the folder is not there."""
        nothing: list[Any] = []
        tree = self._patiently(
            f"{repo} at {commit[:12]}", lambda: _tree(self._api(), repo, commit, subfolder), missing=nothing
        )
        return {
            Path(file.path).name: {"bytes": file.size, "sha256": file.lfs.sha256 if file.lfs else None} for file in tree
        }

    def download(self, repo: str, commit: str, path: str, folder: Path) -> Path:
        """Fetch one file below ``folder``, unless it is there at this commit already; its path.

        huggingface_hub's shared cache is neither read nor written.
        """
        from huggingface_hub import hf_hub_download

        def fetch() -> Path:
            found = hf_hub_download(
                repo,
                path,
                revision=commit,
                local_dir=folder,
                cache_dir=folder / ".cache" / "none",
                endpoint=self.endpoint,
            )
            return Path(found)

        return self._patiently(f"{repo} {path} at {commit[:12]}", fetch)

    def _api(self) -> Any:
        from huggingface_hub import HfApi

        return HfApi(endpoint=self.endpoint)

    def _patiently(self, what: str, call: Callable[[], T], missing: T | None = None) -> T:
        """Call until it works, at most ``TRIES`` times; `DataError` of one line when it does not.

        ``missing`` is returned for what is not there, unless it is None.
        """
        waits = self._waits()
        while True:
            try:
                return call()
            except Exception as error:
                if _status(error) == 404 and missing is not None:
                    return missing
                if isinstance(error, OSError) and error.errno is not None:  # the disk's, not the hub's
                    raise
                wait = next(waits, None)
                if wait is None or not _passing(error):
                    raise DataError(f"hub: {what}: {_said(error)}") from None
                time.sleep(min(max(wait, _asked(error)), LONGEST))

    def _waits(self) -> Iterator[float]:
        return iter(self.pause * 2**i for i in range(TRIES - 1))


def _tree(api: Any, repo: str, commit: str, subfolder: str | None) -> list[Any]:
    from huggingface_hub.hf_api import RepoFile

    return [item for item in api.list_repo_tree(repo, subfolder, revision=commit) if isinstance(item, RepoFile)]


def _cause(error: BaseException) -> BaseException:
    """What went wrong first: the client wraps a failed request into a file that it cannot find."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    while isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _status(error: BaseException) -> int | None:
    response = getattr(_cause(error), "response", None)
    return None if response is None else int(response.status_code)


def _passing(error: BaseException) -> bool:
    """Whether another try may help: a busy or failing server, a broken connection, a file that came too short."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    status = _status(error)
    if status is not None:
        return status in BUSY
    cause = _cause(error)
    if isinstance(cause, OfflineModeIsEnabled):
        return False
    return isinstance(cause, OSError) or type(cause).__module__.startswith("httpx")


def _asked(error: BaseException) -> float:
    """Seconds that the server asks to wait, 0 where it asks for nothing."""
    response = getattr(_cause(error), "response", None)
    value = "" if response is None else response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else 0.0


def _said(error: BaseException) -> str:
    """One line: what it means and what to do."""
    from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled

    cause, status = _cause(error), _status(error)
    token = "accept its terms on the hub and give a token that may read it (hf auth login, or HF_TOKEN)"
    if isinstance(cause, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set; unset it for this command, which needs the network"
    if isinstance(cause, GatedRepoError) or status == 403:
        return f"gated ({status}); {token}"
    if status == 401:
        return f"not there, or private or gated (401); check its name, and {token}"
    if status == 404:
        return "not there (404); check the names of the repo, the revision and the file"
    if status is not None:
        return f"the server answered {status} after {TRIES} tries; try again later"
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0].strip() if lines else 'no answer'}"
