"""The job that takes the place of a capture: rows and moments of one dump, in the same sealed stores.

No model is loaded; attention, which vectors do not hold, is a tombstone (our choice).
"""

import json
from pathlib import Path
from typing import Any

from isotrace.checkpoints.unread import captured_from
from isotrace.corpus.tokenizer import load_tokenizer
from isotrace.ownership import claim
from isotrace.store import create, fingerprint, seal_empty
from isotrace.vectors.choose import choose, counts_of
from isotrace.vectors.contents import coordinates, layout
from isotrace.vectors.readers import open_dump
from isotrace.vectors.stores import check_size, sample_digest, write_stores

NO_ATTENTION = "dumped vectors hold no attention"
MISSING = {
    "gradients": ("gradient", "the dump holds no gradients"),
    "loss": ("loss", "the dump holds no losses"),
    "token_id": ("token_id", "the dump holds no token ids"),
}
"""Array -> what is made of it, and the reason that those rows carry where it is not there."""


def import_dump(
    audit_path: Path, *, cache: Path, moments: Path, heads: Path, spec: dict[str, Any], rows_at: str | None = None
) -> None:
    """Seal rows and moments of one dump, and attention as empty; all three where its audit found it broken.

    rows_at: ``s3://BUCKET/PREFIX`` for the files of the cache, None for beside its manifest.
    """
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    attributes, making = (
        captured_from(audit, spec, loss_reduction="unknown", compute_dtype="float32"),
        fingerprint(spec),
    )
    with claim(cache, moments, heads, away={cache: rows_at}) as (cache_attempt, moments_attempt, heads_attempt):
        if audit["status"] == "broken":
            for attempt in (cache_attempt, moments_attempt, heads_attempt):
                seal_empty(attempt, attributes=attributes, fingerprint=making, reason=audit["reason"])
            return
        dump, arrays = open_dump(audit["source"]["path"]), spec["arrays"]
        of = layout(dump, arrays, spec["sites"])
        known = coordinates(dump, arrays, of.n)
        counts = counts_of(known, spec["counts"], _special_ids(spec["tokenizer"]))
        chosen = choose(known, counts, spec)
        check_size(of, chosen, spec)
        attributes |= {
            "sample_digest": sample_digest(known, chosen),
            "model_sites": list(of.sites),
            "moments_tokens": "sample",
            "special_ids": list(counts.special_ids),
            "missing": dict(said for name, said in MISSING.items() if not arrays[name]),
        }
        seal_empty(heads_attempt, attributes=attributes, fingerprint=making, reason=NO_ATTENTION)
        with (
            create(moments_attempt, attributes, making) as moments_root,
            create(cache_attempt, attributes, making) as cache_root,
        ):
            write_stores(dump, of, known, chosen, counts, cache=cache_root, moments=moments_root, spec=spec)


def _special_ids(folder: str | None) -> tuple[int, ...]:
    return tuple(sorted(int(i) for i in load_tokenizer(folder).all_special_ids)) if folder else ()
