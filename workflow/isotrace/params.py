"""The slice of the config each rule reads, as one plain sorted dict, with the digest of the code it runs.

Snakemake compares params by their repr, so nothing here but str, int, float, bool, list and dict, sorted.
"""

from pathlib import Path
from typing import Any

from isotrace.corpus.shape import CONTEXT
from isotrace.digest import code_digest
from isotrace.settings.base import Block
from isotrace.settings.sources import Init, Stored, Training
from isotrace.sources.series import RESULTS, Found
from isotrace.study import Study

ROOT = Path(__file__).parents[2]
CAPTIONS = ROOT / "workflow" / "report"
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


class Params:
    """One method a rule: wildcards in, the dict out."""

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

    def tokens(self, model: str) -> dict[str, Any]:
        s = self.study
        return spec(s, "tokens", seed=s.seed, shape=self._shape(model), **plain(s.tokens))

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
        return spec(s, "initialise", seed=seed, objective=m.objective, architecture=given)

    def dequantise(self, model: str) -> dict[str, Any]:
        return spec(self.study, "dequantise", objective=self.study.models[model].objective)

    def prefetch(self, model: str, checkpoint: str) -> dict[str, Any]:
        """Commit and hashes say what comes out, so no code is part of it: an edit must not fetch a series again."""
        found = self.study.series[model].downloads[checkpoint]
        return dict(plain({"threads": 1, "model": model, "download": found}))

    def prefetch_tokenizer(self, model: str) -> dict[str, Any]:
        """The tokenizer's files, then the config.json of the first checkpoint."""
        known = self.study.series[model].downloads
        config = known["config"]
        config = config | {"files": {n: file for n, file in config["files"].items() if n == "config.json"}}
        return dict(plain({"threads": 1, "model": model, "downloads": [known["tokenizer"], config]}))

    def audit(self, model: str, checkpoints: list[str]) -> dict[str, Any]:
        """What is known of each checkpoint, and its folder: below the model's weights, or where the config says."""
        m, known = self.study.models[model], self.study.series[model]
        found = [self._checkpoint(model, known.at(checkpoint)) for checkpoint in checkpoints]
        return spec(self.study, "audit", objective=m.objective, checkpoints=found)

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
        }

    def lock(self, model: str) -> dict[str, Any]:
        source, known = self.study.models[model].source, self.study.series[model]
        on_broken = source.on_broken if isinstance(source, Stored) else "skip"
        series = {"model": model, "provider": known.provider, "total_steps": known.total_steps}
        return spec(self.study, "lock", on_broken=on_broken, drawn=known.drawn, left_out=known.left_out, **series)

    def capture(self, model: str, checkpoint: str) -> dict[str, Any]:
        s, m = self.study, self.study.models[model]
        return spec(
            s,
            "capture",
            model=model,
            checkpoint=checkpoint,
            objective=m.objective,
            device=s.execution.device,
            buckets=s.bucket_names,
            store=s.store,
            modules=m.modules,
            **plain(s.capture),
        )

    @property
    def _pooling(self) -> dict[str, str]:
        """How checkpoints are pooled into a basis."""
        return {"pool_center": self.study.bases.pool_center, "pool_scale": self.study.bases.pool_scale}

    def bases(self, model: str, method: str) -> dict[str, Any]:
        s = self.study
        return spec(
            s,
            "bases",
            seed=s.seed,
            method=method,
            rank=max(s.bases.ranks),
            kinds=[k for k in s.bases.kinds if method in s.bases.methods or k == "fixed"],
            early=s.series[model].early(s.bases.early_fraction),
            buckets=s.bucket_names,
            **self._pooling,
        )

    def moving(self, model: str, method: str) -> dict[str, Any]:
        s = self.study
        rank = max(s.bases.ranks)
        return spec(s, "moving", seed=s.seed, method=method, rank_max=rank, buckets=s.bucket_names, **self._pooling)

    def analysis(self, stage: str, model: str) -> dict[str, Any]:
        """Energy, isotropy and geometry: their own block, and which bases they compare."""
        s = self.study
        slices = plain(getattr(s, stage))
        if stage == "energy":
            slices["ranks"] = s.bases.ranks
        if stage == "geometry":
            slices |= {"rank": s.dynamics.rank, "method": s.dynamics.method}
        kinds = [k for k in s.bases.kinds if stage != "geometry" or k == "fixed"]
        return spec(
            s,
            stage,
            seed=s.seed,
            model=model,
            kinds=kinds,
            methods=s.bases.methods,
            rank_max=max(s.bases.ranks),
            buckets=s.bucket_names,
            **self._pooling,
            **slices,
        )

    def frequency(self) -> dict[str, Any]:
        s = self.study
        slices = plain(s.frequency)
        return spec(s, "frequency", seed=s.seed, buckets=s.bucket_names, **slices)

    def attention(self) -> dict[str, Any]:
        return spec(self.study, "attention")

    def tables(self, stage: str) -> dict[str, Any]:
        s = self.study
        seeds = {name: s.seed_of(name) for name in s.models}
        early, late = s.bases.early_fraction, s.bases.late_fraction
        return spec(s, "tables", study=s.study, seeds=seeds, early=early, late=late, stage=stage)

    def dynamics(self, script: str) -> dict[str, Any]:
        """The tests and the claims read the same slice."""
        s = self.study
        early, late = s.bases.early_fraction, s.bases.late_fraction
        objectives = {name: model.objective for name, model in s.models.items()}
        slices = plain(s.dynamics)
        slices.pop("claims")
        phases = {"early_fraction": early, "late_fraction": late}
        return spec(s, script, seed=s.seed, objectives=objectives, **phases, **slices)

    def figure(self, figure: str) -> dict[str, Any]:
        s = self.study
        drawn = code_digest(SCRIPTS.parent / "isotrace" / "figures" / f"{figure}.py")
        read = {"rank": s.dynamics.rank, "method": s.dynamics.method, "null_space": s.dynamics.null_space}
        options: dict[str, dict[str, Any]] = {
            "energy_over_training": {**read, "confidence": s.energy.confidence},
            "early_late": {
                **read,
                "confidence": s.energy.confidence,
                "early_fraction": s.bases.early_fraction,
                "late_fraction": s.bases.late_fraction,
            },
            "isotropy_ablation": {
                **read,
                "confidence": s.isotropy.confidence,
                "estimator": "corrected" if "corrected" in s.isotropy.estimators else s.isotropy.estimators[0],
                "convention": s.isotropy.conventions[0],
                "outliers": s.isotropy.outliers[0],
            },
            "cosine_over_training": {"confidence": s.geometry.confidence},
            "frequency_geometry": {"confidence": s.frequency.confidence},
        }
        chosen = {"venue": s.figures.venue, **options.get(figure, {})}
        return spec(s, "figures", figure=figure, drawn=drawn, options=chosen)

    def calibration(self) -> dict[str, Any]:
        return spec(self.study, "calibration")

    def plan(self) -> dict[str, Any]:
        return spec(self.study, "plan")

    def report(self) -> dict[str, Any]:
        s = self.study
        captions = {figure: (CAPTIONS / f"{figure}.rst").read_text(encoding="utf-8") for figure in s.figures.names}
        return spec(
            s, "report", study=s.study, config=s, captions=captions, rank=s.dynamics.rank, method=s.dynamics.method
        )
