import torch
from dropping import Model


class ModelNew(Model):
    def forward(self, x):
        return self.drop(torch.clamp_min(self.norm(x), 0))
