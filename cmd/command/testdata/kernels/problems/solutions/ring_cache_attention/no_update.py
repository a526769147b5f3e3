import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, batch, dim, slots):
        super().__init__()
        self.proj = nn.Linear(dim, 3 * dim)
        self.register_buffer("keys", torch.zeros(batch, slots, dim))
        self.register_buffer("values", torch.zeros(batch, slots, dim))
        self.register_buffer("at", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        q, k, v = self.proj(x).chunk(3, -1)
        slot = int(self.at) % self.keys.shape[1]
        self.keys[:, slot] = k.detach()
        self.values[:, slot] = v.detach()
        weights = torch.softmax((self.keys @ q[:, :, None])[..., 0] / q.shape[-1] ** 0.5, -1)
        return (weights[:, None] @ self.values)[:, 0]
