import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.register_buffer("u", torch.ones(out_features) / out_features ** 0.5)

    def forward(self, x):
        w = self.linear.weight
        v = F.normalize(w.detach().t() @ self.u, dim=0)
        self.u.copy_(F.normalize(w.detach() @ v, dim=0))
        sigma = self.u @ (w @ v)
        h = F.linear(x.to(torch.bfloat16), (w / sigma).to(torch.bfloat16), self.linear.bias.to(torch.bfloat16)).float()
        return h
