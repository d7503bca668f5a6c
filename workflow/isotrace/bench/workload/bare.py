"""The baseline of capture: forward passes and autograd.grad at the same sites of the same batches, nothing kept.

Our choice: a GPT-NeoX (Black et al. 2022) of random weights, which costs what a trained one costs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from isotrace.bench.registry import Sizes
from isotrace.capture.trace import as_tensor, recorded
from isotrace.corpus.sample import IGNORED
from isotrace.corpus.stores import Passes
from isotrace.errors import ConfigError

HEAD_WIDTH = 64


def random_model(sizes: Sizes) -> nn.Module:
    """A frozen GPT-NeoX of ``layers``, ``width`` and ``vocabulary`` for sequences of ``length``, on a GPU if any.

    Heads are 64 wide, or there is one. ConfigError for a width that rotary embeddings cannot take.
    """
    width = sizes["width"]
    if width % 8:
        raise ConfigError(f"bench --size width={width}: not a multiple of 8")
    config = GPTNeoXConfig(
        hidden_size=width,
        num_hidden_layers=sizes["layers"],
        num_attention_heads=1 if width % HEAD_WIDTH else width // HEAD_WIDTH,
        intermediate_size=4 * width,
        vocab_size=sizes["vocabulary"],
        max_position_embeddings=sizes["length"],
        use_cache=False,
    )
    torch.manual_seed(0)
    model: nn.Module = GPTNeoXForCausalLM(config)
    return model.eval().requires_grad_(False).to("cuda" if torch.cuda.is_available() else "cpu")


def bare(
    model: nn.Module,
    sites: Mapping[str, nn.Module],
    passes: Passes,
    *,
    batch_size: int,
    weights: Sequence[Tensor] = (),
) -> None:
    """Gradients at every site, and of ``weights``, of the summed cross-entropy, one batch after the other."""
    device = next(model.parameters()).device
    with _differentiable(weights):
        for start in range(0, len(passes.inputs), batch_size):
            batch = slice(start, start + batch_size)
            ids, targets = (as_tensor(x[batch], device) for x in (passes.inputs, passes.targets))
            with recorded(sites) as outputs:
                logits = model(input_ids=ids).logits.flatten(0, 1)  # (b, T, V) -> (b*T, V)
            loss = nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED, reduction="sum")
            torch.autograd.grad(loss, [*outputs.values(), *weights])
    if device.type == "cuda":
        torch.cuda.synchronize()


@contextmanager
def _differentiable(weights: Sequence[Tensor]) -> Iterator[None]:
    for weight in weights:
        weight.requires_grad_()
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(False)
