"""Attention logits as a layer computes them, a run of query positions at a time.

Mask, position bias (Raffel et al. 2020), soft-cap (Gemma 2) and sinks (GPT-OSS) enter as the model applies them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

RUN_BYTES = 2**23
"""Bytes of float64 logits of one run; some eight times as much is the peak while they are summed up."""


@dataclass(frozen=True)
class Scores:
    """What decides the attention of one layer over a batch.

    query (b, H, T, d_h), key (b, K, T, d_h) with H a multiple of K, both after rotary embedding; scale multiplies
    their products; mask (b or 1, 1, T or 1, T) and bias (b or 1, H, T or 1, T) are added to the logits after the
    soft-cap; sink (H,) is the logit of one more key, which has no token and no value; allowed (T, T) says which keys a
    query may see where no mask does; at (T,) is the token of each position, where positions are not tokens.
    """

    query: Tensor
    key: Tensor
    scale: float
    mask: Tensor | None = None
    bias: Tensor | None = None
    softcap: float | None = None
    sink: Tensor | None = None
    allowed: Tensor | None = None
    at: Tensor | None = None

    def runs(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """(positions, logits (b, H, R, T), visible (b, R, T)), in order; with a sink T + 1, the sink last."""
        b, heads, length, _ = self.query.shape
        keys = self.key.repeat_interleave(heads // self.key.shape[1], dim=1)
        size = max(1, RUN_BYTES // (8 * b * heads * keys.shape[2]))
        for start in range(0, length, size):
            rows = slice(start, min(start + size, length))
            logits, visible = self._run(keys, rows)
            yield rows, logits, visible

    def _run(self, keys: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        logits = torch.matmul(self.query[:, :, rows], keys.transpose(2, 3)) * self.scale
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        b, _, size, width = logits.shape
        visible = torch.ones((b, size, width), dtype=torch.bool, device=logits.device)
        if self.allowed is not None:
            visible &= self.allowed[rows]
            logits = logits.masked_fill(~visible[:, None], torch.finfo(logits.dtype).min)
        if self.mask is not None:
            mask = _rows(self.mask, rows)[..., :width]
            visible &= (mask > torch.finfo(mask.dtype).min / 2)[:, 0]
            logits = logits + mask
        if self.bias is not None:
            logits = logits + _rows(self.bias, rows)[..., :width]
        if self.sink is not None:
            logits = torch.cat([logits, self.sink.view(1, -1, 1, 1).expand(b, -1, size, 1)], dim=3)
            visible = torch.nn.functional.pad(visible, (0, 1), value=True)
        return logits, visible


def _rows(added: Tensor, rows: slice) -> Tensor:
    """The rows of a term (b, H, T, T) that is added to logits; one row serves all."""
    return added if added.shape[2] == 1 else added[:, :, rows]
