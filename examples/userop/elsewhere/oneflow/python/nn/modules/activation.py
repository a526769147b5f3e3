class LeakyReLUYzh(Module):
    def __init__(self, alpha: float = 1e-2):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return flow._C.leaky_relu_yzh(x, alpha=self.alpha)

    def extra_repr(self):
        return f"alpha={self.alpha}"
