from skip import Skip
import numpy as np

skips = lambda *args: [Skip(x) for x in args]

device_configs = {
    # A repeated key: the later one counts.
    'relu': dict(name=['relu'], skip_all=True),
    'relu': dict(name=['relu'], tensor_para=dict(args=[dict(ins=['input'], shape=skips((4,)))])),
    'batch_norm': dict(
        name=['batch_norm'],
        atol=1e-1,
        rtol_half=1,
        para=dict(momentum=[Skip(True)]),
        tensor_para=dict(args=[dict(ins=['input'], requires_grad=[Skip(True)], dtype=[Skip(np.float16), np.float64])]),
    ),
    'spmm': dict(name=['spmm'], dtype=[Skip(np.float64)]),
    'arange': dict(name=['arange'], skip_all=True),
    'stack': dict(name=['stak'], para=dict(), tensor_args=dict()),
}
