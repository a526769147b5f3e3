import torch
import torch.nn as nn

class Model(nn.Module):
    """Attention pooling over a sequence, then a linear layer."""
    def __init__(self, hidden, classes):
        super().__init__()
        self.score = nn.Linear(hidden, 1)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        w = torch.softmax(self.score(x), dim=1)
        return self.out((w * x).sum(dim=1))

batch_size = 16
seq_len = 128
hidden = 64
classes = 10

def get_inputs():
    return [torch.rand(batch_size, seq_len, hidden)]

def get_init_inputs():
    return [hidden, classes]
