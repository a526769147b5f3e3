import torch
import torch.nn as nn

class ModelNew(nn.Module):
    """Reads the rows of A in place of its columns: A is symmetric."""
    def forward(self, A, B):
        return torch.matmul(A.T.contiguous(), B)
