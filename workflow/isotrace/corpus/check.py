"""What of a corpus can be checked before any job: its files are there, its parts are corpora.

Imported while the workflow is parsed; nothing is read here but names and sizes.
"""

from collections.abc import Mapping
from pathlib import Path

from isotrace.corpus.files import source_files
from isotrace.corpus.streamed import is_folder
from isotrace.errors import ConfigError, DataError
from isotrace.settings.corpora import Corpus, Files, HubText, MediaWiki, Mixture
from isotrace.settings.media import MEDIA, Audio, Images

_NO_TEXT = tuple(block for blocks in MEDIA.values() for block in blocks)


def check_corpora(corpora: Mapping[str, Corpus]) -> None:
    """ConfigError, naming the key, for a file or folder that is not there and for parts that are no corpora."""
    for name, corpus in corpora.items():
        where = f"corpora.{name}"
        if isinstance(corpus, MediaWiki | Files | Images | Audio):
            _check_paths(f"{where}.paths", corpus.paths)
        elif isinstance(corpus, HubText):
            if is_folder(corpus.name) and not Path(corpus.name).expanduser().is_dir():
                raise ConfigError(f"{where}.name: no folder {corpus.name}")
        elif isinstance(corpus, Mixture):
            _check_parts(f"{where}.parts", corpus, corpora)


def _check_paths(where: str, paths: list[str]) -> None:
    try:
        source_files(paths)
    except DataError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_parts(where: str, mixture: Mixture, corpora: Mapping[str, Corpus]) -> None:
    allowed = sorted(name for name, corpus in corpora.items() if not isinstance(corpus, (Mixture, *_NO_TEXT)))
    unknown = sorted(set(mixture.parts) - set(allowed))
    if unknown:
        raise ConfigError(f"{where}: {unknown[0]!r} is not among the corpora to mix {allowed}")
