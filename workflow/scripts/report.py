"""One self-contained page of the study."""

from pathlib import Path

import yaml

from isotrace.headline import headline
from isotrace.job import job
from isotrace.report import caption, page
from isotrace.results import read_declared, read_locks, read_tables, read_text

with job(snakemake) as spec:
    locks = read_locks(snakemake.input.locks)
    tables = read_tables(snakemake.input.tables, locks)
    captions = {name: caption(text) for name, text in spec["captions"].items()}
    text = page(
        study=spec["study"],
        claims=tables["claims"],
        sentences={c["claim"]: c["sentence"] for c in read_declared(snakemake.input.declared)["claims"]},
        audit=tables["audit"],
        locks=locks,
        text=read_text(snakemake.input.tokens),
        headline=headline(tables, rank=spec["rank"], method=spec["method"]),
        figures={png: captions[png.stem] for png in map(Path, snakemake.input.figures)},
        config=yaml.safe_dump(spec["config"], sort_keys=False),
    )
    Path(snakemake.output[0]).write_text(text, encoding="utf-8")
