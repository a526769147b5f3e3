import torch
import triton
import triton.language as tl


@triton.jit
def _loss_kernel(x_ptr, t_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr, IGNORE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    target = tl.load(t_ptr + row)
    top = tl.max(x, axis=0)
    picked = tl.sum(tl.where(cols == target, x - top, 0.0), axis=0)
    loss = tl.log(tl.sum(tl.exp(x - top), axis=0)) - picked
    if IGNORE:
        loss = tl.where(target == -1, 0.0, loss)
    tl.store(loss_ptr + row, loss)


def _launch(logits, target, ignore):
    logits, target = logits.contiguous(), target.contiguous()
    loss = torch.empty(logits.shape[0], dtype=logits.dtype, device=logits.device)
    if logits.numel():
        block = triton.next_power_of_2(logits.shape[1])
        _loss_kernel[(logits.shape[0],)](logits, target, loss, logits.shape[1], BLOCK=block, IGNORE=ignore)
    return loss


def cross_entropy_rows(logits, target):
    return _launch(logits, target, True)


def cross_entropy_rows_all(logits, target):
    return _launch(logits, target, False)
