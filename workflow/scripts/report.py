"""One self-contained page of the study, and what its jobs took."""

from pathlib import Path

from isotrace.headline import headline
from isotrace.job import job
from isotrace.report.page import page
from isotrace.report.runtime import names_of, runtime
from isotrace.results import read_declared, read_locks, read_tables, read_text

with job(snakemake) as spec:
    locks = read_locks(snakemake.input.locks)
    tables = read_tables(snakemake.input.tables, locks)
    folder = Path(spec["config"]["pathvars"].get("benchmarks", "benchmarks"))
    took = runtime(folder, names_of(spec["config"], spec["groups"], locks))
    text = page(
        tables=tables,
        headline=headline(tables, rank=spec["rank"], method=spec["method"]),
        sentences={c["claim"]: c["sentence"] for c in read_declared(snakemake.input.declared)["claims"]},
        locks=locks,
        text=read_text(snakemake.input.tokens),
        figures={png: png.with_suffix(".rst").read_text("utf-8") for png in map(Path, snakemake.input.figures)},
        runtime=took,
        config=spec["config"],
        citation=spec["citation"],
    )
    took.to_csv(snakemake.output.runtime, index=False)
    Path(snakemake.output.html).write_text(text, encoding="utf-8")
