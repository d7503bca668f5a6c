"""Config blocks for where text comes from, one a kind of corpus."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from isotrace.corpus.streamed import is_folder
from isotrace.settings.base import Block, Slug, key
from isotrace.settings.media import Audio, Images, Tones

Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Weight = Annotated[float, Field(gt=0)]

_LANGUAGE = "language of the text as a BCP 47 tag, e.g. en; kept with documents and tokens, shown in the report"
_SHORTER = "shorter documents are left out"
_MOST = "stop after this many documents; null reads all"
_PATHS = "files or globs; `python:PACKAGE/path` is a file inside an installed Python package"


class MediaWiki(Block):
    """Articles of an XML dump."""

    source: Literal["mediawiki"] = key(..., "an XML dump of a MediaWiki; also .gz, .bz2")
    paths: list[str] = key(..., _PATHS, min_length=1)
    min_characters: int = key(200, _SHORTER, unit="characters", ge=0)
    max_documents: int | None = key(None, _MOST, unit="documents", ge=1)
    language: Language | None = key(None, _LANGUAGE)


class Files(Block):
    """Plain files."""

    source: Literal["files"] = key(..., ".txt (a document each) or .jsonl (one a line); also .gz, .bz2")
    paths: list[str] = key(..., _PATHS, min_length=1)
    text_key: str = key("text", "the field of a jsonl record that holds the text")
    min_characters: int = key(200, _SHORTER, unit="characters", ge=0)
    max_documents: int | None = key(None, _MOST, unit="documents", ge=1)
    language: Language | None = key(None, _LANGUAGE)


class HubText(Block):
    """A dataset of the Hugging Face hub, or a folder in such a layout, streamed by the library `datasets`."""

    source: Literal["datasets"] = key(..., "a dataset that the library `datasets` streams; needs the extra `hub`")
    name: str = key(
        ..., "repository, e.g. org/name; or a folder of data files, written ./folder, ~/folder or /folder", min_length=1
    )
    revision: Commit | None = key(
        ...,
        "commit of the repository, 40 hex digits; null: not known yet, or a folder (without a commit no job starts)",
    )
    config: str | None = key(None, "configuration of the dataset; null takes its only one")
    split: str = key("train", "which split")
    field: str = key("text", "the column that holds the text")
    shuffle_seed: int | None = key(
        None, "shuffle in a buffer of 10,000 documents by this seed; null keeps the dataset's order", ge=0
    )
    min_characters: int = key(200, _SHORTER, unit="characters", ge=0)
    max_documents: int | None = key(10_000, _MOST, unit="documents", ge=1)
    language: Language | None = key(None, _LANGUAGE)

    @model_validator(mode="after")
    def _check(self) -> "HubText":
        if is_folder(self.name) and self.revision is not None:
            raise ValueError(f"revision: a folder has none, got {self.revision}; write null")
        return self


class Mixture(Block):
    """Documents of other corpora, by share of characters, in an order drawn from the study's seed."""

    source: Literal["mixture"] = key(..., "a mixture of other corpora")
    parts: dict[Slug, Weight] = key(
        ..., "corpora and their weights, as shares of characters; read until one of them has no more", min_length=1
    )
    max_documents: int | None = key(None, _MOST, unit="documents", ge=1)


Corpus = Annotated[MediaWiki | Files | HubText | Mixture | Images | Audio | Tones, Field(discriminator="source")]
