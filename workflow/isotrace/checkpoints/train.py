"""A small language model trained from random weights, its checkpoints written on the way, resumable at any step.

AdamW, linear warm-up, cosine decay to a tenth, gradient norm clipped at 1: common practice, our choice.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrace.checkpoints.attention_scale import folded, scale_attention
from isotrace.checkpoints.initialise import initial_model, write_checkpoint
from isotrace.checkpoints.memory import keep_freed_memory
from isotrace.checkpoints.training_loss import TrainingLoss
from isotrace.corpus.sample import masks
from isotrace.corpus.tokenizer import load_tokenizer, tokenizer_digest
from isotrace.errors import ConfigError, DataError
from isotrace.seeding import derived_seed, generator

if TYPE_CHECKING:
    import torch

_BETAS = (0.9, 0.95)
_FINAL_RATE = 0.1
_CLIP = 1.0


def train(
    spec: dict[str, Any],
    ids: NDArray[np.int32],
    tokenizer_folder: str | Path,
    out: str | Path,
    *,
    threads: int,
    progress: Callable[[int, float], None] = lambda step, loss: None,
) -> list[Path]:
    """Train and write ``out/checkpoint-N`` for every N of ``spec["steps"]``; returns those folders.

    spec: ``architecture``, ``objective``, ``steps``, ``total_steps``, ``batch_size`` (sequences), ``learning_rate``,
    ``warmup_steps``, ``weight_decay``, ``seed``, ``save_every`` (steps between resume states), ``attention_scale``,
    what `TrainingLoss` reads, and for mlm ``mask_rate`` and ``replace``. ids (S, T): training sequences only.
    ``progress`` receives each step (from 1) and its mean loss.
    Data order, masks and dropout depend on (seed, step): after a kill at any moment a rerun continues from
    ``out/.resume`` and ends in the same bytes, for one thread count and one version of the libraries.
    """
    import torch

    _check(spec, ids)
    tokenizer = load_tokenizer(tokenizer_folder)
    run = _Run(spec, ids, tokenizer, Path(tokenizer_folder), Path(out))
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return _train(run, threads, progress)
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Run:
    """What does not change while training."""

    spec: dict[str, Any]
    ids: NDArray[np.int32]
    tokenizer: Any
    tokenizer_folder: Path
    out: Path

    @property
    def resume(self) -> Path:
        return self.out / ".resume"

    def digest(self, threads: int) -> str:
        """Of all that decides the weights; a resume state of another digest is not continued."""
        decides = [self.spec, threads, tokenizer_digest(self.tokenizer), hashlib.sha256(self.ids.tobytes()).hexdigest()]
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _check(spec: dict[str, Any], ids: NDArray[np.int32]) -> None:
    beyond = [step for step in spec["steps"] if not 0 <= step <= spec["total_steps"]]
    if beyond or not spec["steps"]:
        raise ConfigError(f"steps {beyond}: checkpoints lie between 0 and total_steps {spec['total_steps']}")
    if len(ids) < spec["batch_size"]:
        raise DataError(f"{len(ids)} training sequences do not fill a batch of {spec['batch_size']}; add documents")


def _train(run: _Run, threads: int, progress: Callable[[int, float], None]) -> list[Path]:
    import torch

    spec = run.spec
    model = initial_model(spec["architecture"], spec["objective"], run.tokenizer, spec["seed"])
    rows = int(model.get_input_embeddings().weight.shape[0])  # type: ignore[operator]
    if int(run.ids.max()) >= rows:
        raise DataError(f"token id {int(run.ids.max())} has no embedding row (vocab_size {rows}); raise vocab_size")
    scale_attention(model, spec["attention_scale"])
    objective = TrainingLoss(model, spec)
    optimizer = _optimizer(model, spec)
    digest = run.digest(threads)
    start = _restore(run, model, optimizer, digest)
    if start == 0 and 0 in spec["steps"]:
        _save(run, model, 0)
    for step in range(start + 1, spec["total_steps"] + 1):
        inputs, labels = _batch(run, step)
        torch.manual_seed(derived_seed(spec["seed"], "dropout", step))
        loss: Any = objective(inputs, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(spec, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        progress(step, float(loss.detach()))
        if step in spec["steps"]:
            _save(run, model, step)
        if step in spec["steps"] or step % spec["save_every"] == 0:
            _keep(run, model, optimizer, step, digest)
    shutil.rmtree(run.resume, ignore_errors=True)
    return [run.out / f"checkpoint-{step}" for step in sorted(spec["steps"])]


def learning_rate(spec: dict[str, Any], step: int) -> float:
    """The rate of step 1..total_steps: linear warm-up, then half a cosine down to a tenth of the peak."""
    peak, warmup, total = float(spec["learning_rate"]), int(spec["warmup_steps"]), int(spec["total_steps"])
    if step <= warmup:
        return peak * step / warmup
    share = (step - warmup) / max(1, total - warmup)
    return peak * (_FINAL_RATE + (1 - _FINAL_RATE) * 0.5 * (1 + math.cos(math.pi * share)))


def _optimizer(model: "torch.nn.Module", spec: dict[str, Any]) -> "torch.optim.Optimizer":
    import torch

    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]  # norms and biases are not decayed
    groups = [{"params": matrices, "weight_decay": spec["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=spec["learning_rate"], betas=_BETAS, fused=True)


def _batch(run: _Run, step: int) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Inputs and labels of one step, (batch, T): sequences in a seeded order, epoch after epoch."""
    import torch

    spec, n = run.spec, len(run.ids)
    stream = np.arange((step - 1) * spec["batch_size"], step * spec["batch_size"])
    orders = {int(e): generator(spec["seed"], "order", int(e)).permutation(n) for e in np.unique(stream // n)}
    chosen = np.array([orders[int(i // n)][i % n] for i in stream])
    ids = run.ids[chosen]
    if spec["objective"] == "clm":
        same = torch.from_numpy(ids.astype(np.int64))
        return same, same
    special = tuple(int(i) for i in run.tokenizer.all_special_ids)
    rule = {
        "seed": spec["seed"],
        "mask_rate": spec["mask_rate"],
        "mask_token_id": run.tokenizer.mask_token_id,
        "random_ids": len(run.tokenizer),
        "replace": spec["replace"],
    }
    inputs, labels = masks(ids, chosen, np.full(len(chosen), step), rule, special)
    return torch.from_numpy(inputs.astype(np.int64)), torch.from_numpy(labels.astype(np.int64))


def _save(run: _Run, model: "torch.nn.Module", step: int) -> None:
    """Write a checkpoint beside the resume state, then publish it."""
    run.resume.mkdir(parents=True, exist_ok=True)
    with folded(model, run.spec["attention_scale"]):
        write_checkpoint(model, run.tokenizer_folder, run.resume / f"checkpoint-{step}")
    _publish(run, step)


def _publish(run: _Run, step: int) -> None:
    # Snakemake deletes the outputs of a failed job, so until training ends the resume folder keeps a second name.
    source, target = run.resume / f"checkpoint-{step}", run.out / f"checkpoint-{step}"
    temporary = run.out / f"tmp-checkpoint-{step}"
    for folder in (temporary, target):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, temporary, copy_function=_link)
    temporary.rename(target)


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _keep(run: _Run, model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", step: int, digest: str) -> None:
    import torch

    state = {"step": step, "digest": digest, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    run.resume.mkdir(parents=True, exist_ok=True)
    temporary = run.resume / "state.tmp"
    torch.save(state, temporary)
    temporary.replace(run.resume / "state.pt")


def _restore(run: _Run, model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", digest: str) -> int:
    """The step to continue after, 0 for a fresh start; leftovers of another run are removed."""
    import torch

    path = run.resume / "state.pt"
    state: dict[str, Any] = {"digest": "", "step": 0}
    if path.is_file():
        state = torch.load(path, weights_only=True)
    done = [step for step in sorted(run.spec["steps"]) if step <= state["step"]]
    kept = all((run.resume / f"checkpoint-{step}").is_dir() for step in done)
    for folder in [*run.out.glob("checkpoint-*"), *run.out.glob("tmp-checkpoint-*")]:
        shutil.rmtree(folder)
    if state["digest"] != digest or not kept:
        shutil.rmtree(run.resume, ignore_errors=True)
        return 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for step in done:
        _publish(run, step)
    return int(state["step"])
