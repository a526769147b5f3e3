from oneflow.nn.modules.activation import LeakyReLUYzh
