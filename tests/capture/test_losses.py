"""The loss in runs of rows, against autograd on all logits at once."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from isotrace.capture.losses import losses_and_gradient, output_embedding
from isotrace.errors import DataError

ONE_ROW, THREE_ROWS, ALL = 1, 3 * 4 * 50, 2**20


def case(bias: bool = True, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    head = nn.Linear(8, 50, bias=bias).to(dtype).requires_grad_(False)
    targets = torch.randint(0, 50, (2, 7))
    targets[0, 3], targets[1, :2] = -100, -100
    return head, torch.randn(2, 7, 8).to(dtype), targets


def expected(head, hidden, targets):
    leaf = hidden.clone().requires_grad_()
    logits = head(leaf).float()
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="none")
    losses.sum().backward()
    return losses.detach().view(targets.shape), leaf.grad


@pytest.mark.parametrize("loss_bytes", [ONE_ROW, THREE_ROWS, ALL])
@pytest.mark.parametrize("bias", [True, False])
def test_runs_of_any_length_give_autograds_losses_and_gradient(bias, loss_bytes):
    head, hidden, targets = case(bias)
    losses, gradient = losses_and_gradient(head, hidden, targets, loss_bytes=loss_bytes)
    wanted, above = expected(head, hidden, targets)
    none = targets == -100
    assert torch.equal(torch.isnan(losses), none)
    torch.testing.assert_close(losses[~none], wanted[~none], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient, above, rtol=1e-5, atol=1e-6)
    assert (gradient[none] == 0).all()


def test_logits_far_apart_neither_overflow_nor_lose_the_loss():
    head, hidden, targets = case()
    losses, gradient = losses_and_gradient(head, hidden * 1e4, targets)
    wanted, above = expected(head, hidden * 1e4, targets)
    torch.testing.assert_close(losses[targets != -100], wanted[targets != -100], rtol=1e-5, atol=0.1)
    torch.testing.assert_close(gradient, above, rtol=1e-4, atol=1e-5)


def test_bfloat16_keeps_its_losses_in_float32():
    head, hidden, targets = case(dtype=torch.bfloat16)
    losses, gradient = losses_and_gradient(head, hidden, targets, loss_bytes=THREE_ROWS)
    wanted, above = expected(head, hidden, targets)
    assert losses.dtype == torch.float32
    assert gradient.dtype == torch.bfloat16
    torch.testing.assert_close(losses[targets != -100], wanted[targets != -100], rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(gradient, above, rtol=2e-2, atol=2e-2)


def test_without_a_target_there_is_no_loss_and_no_gradient():
    head, hidden, targets = case()
    losses, gradient = losses_and_gradient(head, hidden, torch.full_like(targets, -100))
    assert torch.isnan(losses).all()
    assert (gradient == 0).all()


def test_a_model_without_a_linear_output_embedding_is_named():
    class Headless(nn.Module):
        def get_output_embeddings(self):
            return None

    with pytest.raises(DataError, match="Headless: no linear output embedding"):
        output_embedding(Headless())


PEAK = """
import torch
from torch import nn
from isotrace.capture.losses import losses_and_gradient
def peak():  # of this process alone, in bytes; ru_maxrss would count the parent's too
    return 1024 * next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM"))
torch.set_num_threads(1)
head = nn.Linear(64, 128_000, bias=False).requires_grad_(False)
hidden, targets = torch.randn(1, 1024, 64), torch.zeros(1, 1024, dtype=torch.long)
before = peak()
losses_and_gradient(head, hidden, targets)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_vocabulary_of_128k_at_1024_tokens_needs_less_than_a_gigabyte():
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert 2**20 < int(done.stdout) < 2**29
