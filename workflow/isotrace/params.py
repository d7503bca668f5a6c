"""The slice of the config each rule reads, as one plain sorted dict, with the digest of the code it runs.

Those of rules up to the lock are in ``input_params``; here are the analyses and what is made of them.
"""

from typing import Any

from isotrace.digest import code_digest
from isotrace.figure_options import figure_options
from isotrace.input_params import ROOT, SCRIPTS, InputParams, plain, spec
from isotrace.yamlfile import read_mapping

CARD_TABLES = ("energy", "isotropy", "geometry", "frequency", "attention_intervals", "controls")
"""Tables that the card reads."""
CAPTIONS = ROOT / "workflow" / "report"
CITATION = ROOT / "CITATION.cff"


class Params(InputParams):
    """One method a rule: wildcards in, the dict out."""

    def capture(self, model: str, checkpoint: str) -> dict[str, Any]:
        s, m = self.study, self.study.models[model]
        return spec(
            s,
            "capture",
            model=model,
            checkpoint=checkpoint,
            objective=m.objective,
            device=s.execution.device,
            buckets=s.buckets_of(model),
            store=s.store,
            modules=m.modules,
            **plain(s.capture),
        )

    def clean_cache(self) -> dict[str, Any]:
        return spec(self.study, "clean_cache")

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
            buckets=s.buckets_of(model),
            **self._pooling,
        )

    def moving(self, model: str, method: str) -> dict[str, Any]:
        s = self.study
        rank = max(s.bases.ranks)
        return spec(
            s, "moving", seed=s.seed, method=method, rank_max=rank, buckets=s.buckets_of(model), **self._pooling
        )

    def subspaces(self, model: str) -> dict[str, Any]:
        s = self.study
        slices = plain(s.subspaces)
        return spec(
            s,
            "subspaces",
            seed=s.seed,
            methods=s.bases.methods,
            ranks=s.bases.ranks,
            rank_max=max(s.bases.ranks),
            buckets=s.buckets_of(model),
            **self._pooling,
            **slices,
        )

    def analysis(self, stage: str, model: str) -> dict[str, Any]:
        """Energy, controls, isotropy and geometry: their own block, and which bases they compare."""
        s = self.study
        slices = plain(getattr(s, stage))
        if stage == "controls":
            like_energy = {name: getattr(s.energy, name) for name in ("centred", "resamples", "confidence", "min_rows")}
            slices |= like_energy | {"draws": {"variance_weighted": s.energy.draws.variance_weighted}}
        if stage in ("energy", "controls"):
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
            buckets=s.buckets_of(model),
            **self._pooling,
            **slices,
        )

    def frequency(self, model: str) -> dict[str, Any]:
        s = self.study
        script = "frequency" if model in s.reading else "frequency_vectors"
        return spec(s, script, seed=s.seed, buckets=s.buckets_of(model), **plain(s.frequency))

    def attention(self) -> dict[str, Any]:
        return spec(self.study, "attention", confidence=self.study.geometry.confidence)

    def untrained(self, model: str) -> dict[str, Any]:
        s, m = self.study, self.study.models[model]
        read = {name: getattr(s.capture, name) for name in ("sites", "dtype", "batch_size")}
        names = ("groups", "confidence", "min_rows", "max_rows_dimension")
        measured = {name: getattr(s.geometry, name) for name in names}
        of_model = {"objective": m.objective, "modules": m.modules, "buckets": s.buckets_of(model)}
        basis = {"rank": s.dynamics.rank, "method": s.dynamics.method}
        drawn = {"seeds": s.untrained.seeds, "seed": s.seed, "device": s.execution.device}
        return spec(s, "untrained", **drawn, **of_model, **read, **measured, **basis)

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
        return spec(s, script, seed=s.seed, objectives=objectives, runs=s.groups, **phases, **slices)

    def figure(self, figure: str) -> dict[str, Any]:
        s = self.study
        drawn = code_digest(SCRIPTS.parent / "isotrace" / "figures" / f"{figure}.py")
        text = (CAPTIONS / f"{figure}.rst").read_text(encoding="utf-8")
        options = figure_options(s, figure)
        return spec(s, "figures", figure=figure, drawn=drawn, groups=s.groups, options=options, caption=text)

    def paper(self) -> dict[str, Any]:
        s = self.study
        options = {figure: figure_options(s, figure) for figure in s.figures.names}
        read = {"rank": s.dynamics.rank, "method": s.dynamics.method}
        return spec(s, "paper", study=s.study, groups=s.groups, options=options, **read)

    def toy(self) -> dict[str, Any]:
        return spec(self.study, "toy", seed=self.study.seed, **plain(self.study.toy))

    def card(self) -> dict[str, Any]:
        s = self.study
        read = {"rank": s.dynamics.rank, "method": s.dynamics.method, "null_space": s.dynamics.null_space}
        drawn = {"seed": s.seed, "resamples": s.dynamics.resamples, "confidence": s.dynamics.confidence}
        return spec(s, "card", study=s.study, scores=s.scores, **read, **drawn, **plain(s.card))

    def calibration(self) -> dict[str, Any]:
        return spec(self.study, "calibration")

    def plan(self) -> dict[str, Any]:
        return spec(self.study, "plan")

    def report(self) -> dict[str, Any]:
        s = self.study
        read = {"rank": s.dynamics.rank, "method": s.dynamics.method}
        return spec(s, "report", config=s, groups=s.groups, citation=read_mapping(CITATION), **read)
