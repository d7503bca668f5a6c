"""Documents of a dataset on the Hugging Face hub, or of a folder laid out like one, streamed by `datasets`.

One commit is read, in its own order or shuffled in a buffer by a seed; which columns count is our choice.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isotrace.corpus.documents import Document
from isotrace.errors import DataError

BUFFER = 10_000
"""Documents among which a shuffled stream draws its next one."""


def streamed(spec: dict[str, Any]) -> Iterator[Document]:
    """The documents of a split, those with a text in ``field``; read as far as the caller goes.

    spec: ``name``, ``revision``, ``config``, ``split``, ``field``, ``shuffle_seed`` and ``corpus``, the name that
    errors say. DataError where the library, the commit, the split, the column or the network is missing.
    """
    where, folder = f"corpora.{spec['corpus']}", is_folder(spec["name"])
    _check(spec, where, folder=folder)
    # A cache of its own: jobs never write into the one that other programs share.
    with TemporaryDirectory(prefix="isotrace-datasets-") as cache:
        for number, row in enumerate(_rows(spec, where, cache, folder=folder), start=1):
            text = row.get(spec["field"])
            if not isinstance(text, str):
                raise DataError(f"{where}.field: row {number} has no text in {spec['field']!r}, only {sorted(row)}")
            identifier = f"{spec['name']}:{number}"
            yield Document(id=str(row.get("id", identifier)), title=str(row.get("title", "")), text=text)


def is_folder(name: str) -> bool:
    """Whether a dataset's name is a folder's; ``org/name`` always means the hub."""
    return name.startswith(("./", "../", "/", "~"))


def _check(spec: dict[str, Any], where: str, *, folder: bool) -> None:
    if folder:
        return
    name = spec["name"]
    if spec["revision"] is None:
        ask = f"from huggingface_hub import HfApi; print(HfApi().dataset_info({name!r}).sha)"
        raise DataError(f'{where}.revision: null; put the commit of {name} there: python -c "{ask}"')
    if Path(name).exists():
        raise DataError(f"{where}.name: {name} is a folder here too; write ./{name} for it, or run elsewhere")


def _rows(spec: dict[str, Any], where: str, cache: str, *, folder: bool) -> Iterator[dict[str, Any]]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DataError(f"{where}.source: the package datasets is missing; pip install 'isotrace[hub]'") from error
    path = str(Path(spec["name"]).expanduser()) if folder else spec["name"]
    try:
        rows = load_dataset(
            path, spec["config"], split=spec["split"], revision=spec["revision"], streaming=True, cache_dir=cache
        )
        if spec["shuffle_seed"] is not None:
            rows = rows.shuffle(seed=spec["shuffle_seed"], buffer_size=BUFFER)
        yield from rows
    except Exception as error:  # of four libraries, without a common root
        said = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{where}: {spec['name']} cannot be read ({said})") from error
