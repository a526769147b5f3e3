import torch


def tempered(x): return torch.exp(x * 0.125)
def dropped(x, keep): return torch.where(keep, x / (1 - 0.3), 0)


def chunk_sums(x):
    x = torch.nn.functional.pad(x.float(), (0, -x.shape[1] % 16))
    return x.view(x.shape[0], -1, 16).sum(-1).cumsum(-1)


def square_sums(x): return (x * x).sum(1)
def float8_rounded(x): return x.clamp(-448, 448).to(torch.float8_e4m3fn).to(torch.float32)
def softplus(x): return torch.nn.functional.softplus(x)
def sums(x): return x.sum(1)
def powers(x): return x * x + x * x * x
def scaled_erfc(x): return torch.special.erfcx(x)
def doubled(x): return 2 * x + 1
