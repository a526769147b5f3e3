import numpy as np

configs = {
    'unary': dict(name=['relu', 'neg', 'tanh'], interface=['torch'],
                  tensor_para=dict(args=[dict(ins=['input'], shape=((), (7,), (3, 4), (2, 0)), dtype=[np.float32])])),
}
