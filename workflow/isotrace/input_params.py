"""Params of the rules that make what is analysed: text, tokens, samples, weights, audits.

Snakemake compares params by their repr, so nothing here but str, int, float, bool, list and dict, sorted.
"""

from pathlib import Path
from typing import Any

from isotrace.corpus.shape import CONTEXT
from isotrace.digest import code_digest
from isotrace.settings.base import Block
from isotrace.settings.sources import Given, Init, Training, Vectors
from isotrace.sources.series import RESULTS, Found
from isotrace.study import Study

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "workflow" / "scripts"


def plain(value: Any) -> Any:
    """Blocks, tuples and paths as sorted dicts, lists and strings; what Snakemake and JSON both compare well."""
    if isinstance(value, Block):
        value = value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    raise TypeError(f"params hold plain values only, not {type(value).__name__}")


def spec(settings: Study, script: str, /, **slices: Any) -> dict[str, Any]:
    """What a rule's ``params.spec`` holds: its slices, the thread count, the digest of its code."""
    common = {"threads": settings.execution.numeric_threads, "code": code_digest(SCRIPTS / f"{script}.py")}
    result: dict[str, Any] = plain(common | slices)
    return result


def _code(downloads: dict[str, Any]) -> dict[str, Any]:
    """The code that comes beside other files; a params dict of a model without keeps the keys it had."""
    return {"code_files": downloads["code"]} if "code" in downloads else {}


class InputParams:
    """One method a rule up to the lock: wildcards in, the dict out."""

    def __init__(self, study: Study) -> None:
        self.study = study

    def corpus(self, corpus: str) -> dict[str, Any]:
        found = plain(self.study.corpora[corpus])
        if found["source"] == "mixture":
            found["seed"] = self.study.seed
        if found["source"] == "datasets":
            # Of the code only what reads the stream: an edit elsewhere must not fetch a corpus again.
            found["code"] = code_digest(SCRIPTS.parent / "isotrace" / "corpus" / "streamed.py")
        return spec(self.study, "corpus", corpus=corpus, **found)

    def tokenizer(self, model: str) -> dict[str, Any]:
        m = self.study.models[model]
        assert isinstance(m.source, Training | Init)
        return spec(self.study, "tokenizer", vocab_size=m.source.vocabulary, objective=m.objective)

    def byte_tokenizer(self) -> dict[str, Any]:
        return spec(self.study, "byte_tokenizer")

    def tokens(self, model: str) -> dict[str, Any]:
        s = self.study
        code = getattr(s.models[model].source, "remote_code", None)
        return spec(s, "tokens", seed=s.seed, shape=self._shape(model), remote_code=code, **plain(s.tokens))

    def _shape(self, model: str) -> dict[str, Any]:
        """What tokens need of a model to be trained; of a stored one it is read from its config."""
        source = self.study.models[model].source
        if not isinstance(source, Training):
            return {}
        known = {k: v for k, v in source.architecture.items() if k in CONTEXT}
        return {"vocab_size": source.vocabulary, **known}

    def sample(self, model: str) -> dict[str, Any]:
        s, m = self.study, self.study.models[model]
        masking = plain(s.masking) if m.objective == "mlm" else {}
        return spec(
            s,
            "sample",
            seed=s.seed,
            objective=m.objective,
            buckets=s.buckets,
            sample=s.sample,
            masking=masking,
            moments_tokens=s.capture.moments_tokens,
        )

    def train(self, model: str) -> dict[str, Any]:
        s, m = self.study, self.study.models[model]
        assert isinstance(m.source, Training)
        source = plain(m.source)
        source.pop("kind")
        source["architecture"]["vocab_size"] = source.pop("vocabulary")
        masking = {"mask_rate": s.masking.rate, "replace": s.masking.replace} if m.objective == "mlm" else {}
        total = s.series[model].total_steps
        return spec(
            s, "train", seed=s.seed_of(model), objective=m.objective, total_steps=total, **source, **masking
        ) | {"threads": s.execution.train_threads}

    def initialise(self, model: str, draw: str) -> dict[str, Any]:
        """``draw`` is ``init-{seed}`` of a series of untrained models, ``init`` for the step 0 added to another."""
        s, m = self.study, self.study.models[model]
        given = m.source.architecture if isinstance(m.source, Init) else None
        seed = int(draw.removeprefix("init-")) if isinstance(m.source, Init) else s.seed_of(model)
        return spec(s, "initialise", seed=seed, objective=m.task, architecture=given)

    def dequantise(self, model: str) -> dict[str, Any]:
        return spec(self.study, "dequantise", objective=self.study.models[model].objective)

    def prefetch(self, model: str, checkpoint: str) -> dict[str, Any]:
        """Commit and hashes say what comes out, so no code is part of it: an edit must not fetch a series again."""
        known = self.study.series[model].downloads
        return dict(plain({"threads": 1, "model": model, "download": known[checkpoint], **_code(known)}))

    def prefetch_tokenizer(self, model: str) -> dict[str, Any]:
        """The tokenizer's files, then the config.json of the first checkpoint."""
        known = self.study.series[model].downloads
        config = known["config"]
        config = config | {"files": {n: file for n, file in config["files"].items() if n == "config.json"}}
        return dict(plain({"threads": 1, "model": model, "downloads": [known["tokenizer"], config], **_code(known)}))

    def audit(self, model: str, checkpoints: list[str]) -> dict[str, Any]:
        """What is known of each checkpoint, and its folder: below the model's weights, or where the config says."""
        known = self.study.series[model]
        found = [self._checkpoint(model, known.at(checkpoint)) for checkpoint in checkpoints]
        return spec(self.study, "audit", objective=self.study.models[model].task, checkpoints=found)

    def audit_vectors(self, model: str, checkpoint: str) -> dict[str, Any]:
        """As of other checkpoints, with the arrays to be found; ``first``: the dump whose sites and width are right."""
        s, source, known = self.study, self.study.models[model].source, self.study.series[model]
        assert isinstance(source, Vectors)
        found = self._checkpoint(model, known.at(checkpoint))
        of_source = {"arrays": source.arrays, "sites": source.sites, "first": known.found[0].path}
        objective = s.models[model].objective
        return spec(s, "audit_vectors", objective=objective, provider="vectors", **of_source, **found)

    def vectors(self, model: str, checkpoint: str) -> dict[str, Any]:
        """What rows are taken of a dump, and where they are kept."""
        s, m = self.study, self.study.models[model]
        assert isinstance(m.source, Vectors)
        sample = {"rows_per_bucket": s.sample.rows_per_bucket, "exclude_first": s.sample.exclude_first}
        of_source = {name: getattr(m.source, name) for name in ("arrays", "sites", "tokenizer", "counts")}
        names = {"model": model, "checkpoint": checkpoint, "objective": m.objective, "names": s.buckets_of(model)}
        buckets: Any = s.buckets if m.source.arrays.token_id else {}
        drawn = {"seed": s.seed, "eval_fraction": s.tokens.eval_fraction, "buckets": buckets, **sample}
        return spec(s, "vectors", store=s.store, **names, **of_source, **drawn)

    def perceive(self, model: str, checkpoint: str) -> dict[str, Any]:
        """What is cut out of images or audio, and how a model reads it."""
        s, m = self.study, self.study.models[model]
        names = {"model": model, "checkpoint": checkpoint, "objective": m.objective, "task": m.task}
        sample = {"sequences": s.sample.sequences, "rows_per_bucket": s.sample.rows_per_bucket, "seed": s.seed}
        how = {name: getattr(s.capture, name) for name in ("sites", "dtype", "batch_size")}
        buckets: dict[str, Any] = {"names": s.buckets_of(model), "energy": s.buckets.kind == "energy"}
        if m.task == "characters":
            by_id = plain(s.buckets) | {"by": "input"}
            buckets |= {"buckets": by_id, "length": s.tokens.sequence_length, "exclude_first": s.sample.exclude_first}
        return spec(
            s,
            "perceive",
            corpus={} if m.task == "characters" else s.corpora[s.corpus_of(model)],
            eval_fraction=s.tokens.eval_fraction,
            device=s.execution.device,
            store=s.store,
            **names,
            **sample,
            **how,
            **buckets,
        )

    def _checkpoint(self, model: str, found: Found) -> dict[str, Any]:
        """One checkpoint; ``folder`` lies below the results folder where a rule makes it (``made``)."""
        source, tokens = self.study.models[model].source, found.tokens
        if isinstance(source, Training):
            tokens = source.batch_size * self.study.tokens.sequence_length * found.step
        return {
            "id": found.id,
            "step": found.step,
            "tokens_seen": tokens,
            "folder": found.path.removeprefix(f"{RESULTS}/"),
            "made": bool(found.made_by),
            "origin": found.origin,
            "config": found.config,
            "remote_code": getattr(source, "remote_code", None),
        }

    def lock(self, model: str) -> dict[str, Any]:
        source, known = self.study.models[model].source, self.study.series[model]
        on_broken = source.on_broken if isinstance(source, Given) else "skip"
        series = {"model": model, "provider": known.provider, "total_steps": known.total_steps}
        return spec(self.study, "lock", on_broken=on_broken, drawn=known.drawn, left_out=known.left_out, **series)
