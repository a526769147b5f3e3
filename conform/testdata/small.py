# A config that has a little of everything. small.yaml says the same.
import numpy as np
from config import (Genfunc,
                    Dtype)

diopi_configs = {
    # Repeated: the later one counts, at this place.
    'relu': dict(name=['tanh']),

    # Shapes beside para, cloned arguments, a missing tensor, a gradient.
    'batch_norm': dict(
        name=['batch_norm'],
        dtype=[np.float32, np.float16],
        atol=1e-3,
        rtol_half=0.1,
        para=dict(training=[False, True], momentum=[-0.1, 1]),
        tensor_para=dict(
            args=[
                {
                    'ins': ['input'],
                    'stride': ((20, 5, 1),),
                    'shape': ((2, 3, 4), (8, 3)),
                    'requires_grad': [True],
                },
                {
                    'ins': ['running_mean', 'running_var'],
                    'shape': ((3,), None),
                    'stride': ((2,), (1,)),
                    'dtype': [np.float32],
                    'gen_fn': Genfunc.zeros,
                },
            ],
        ),
    ),

    'relu': dict(
        name=['relu', 'sigmoid'],
        interface=['torch'],
        is_inplace=True,
        tensor_para=dict(
            gen_fn='Genfunc.rand',
            args=[dict(shape=[(), (4,), (0, 3)], dtype=[Dtype.float64])],
        ),
    ),

    # The product of sparse, the last argument's first.
    'spmm': dict(
        name=['spmm'],
        interface=['CustomizedTest'],
        sparse_format='csr',
        tensor_para=dict(
            dtype=[np.float32, np.float64],
            args=[
                dict(ins=['input'], shape=((2, 3),), sparse=[True, False]),
                dict(ins=['mat2'], shape=((3, 4),), sparse=[True, False], gen_fn=dict(fn='Genfunc.uniform', low=-1, high=1)),
            ],
        ),
    ),

    # No tensor.
    'arange': dict(
        name=['arange'],
        interface=['torch'],
        para=dict(start=[0, 1.5], end=[5, -float('inf')], dtype=[np.int64, None], sizes=[(1, 2), [3]], index=[slice(0, 4, 2), slice(None, 3, None)]),
        saved_args=dict(output=0),
        no_output_ref=True,
    ),

    # Literal data, a list of tensors, a list of shapes.
    'stack': dict(
        name=['stack'],
        interface=['torch'],
        requires_backward=[0],
        tensor_para=dict(
            seq_name='tensors',
            args=[
                dict(ins=['index'], value=([1, 2], [[3]]), dtype=[np.int64], gen_policy='gen_tensor_by_value'),
                dict(ins=['tensors'], shape=((2, 3), (4,)), dtype=[np.int16], gen_policy='gen_tensor_list', gen_num_range=[1, 5], no_contiguous=[True]),
                dict(ins=['others'], shape=(((2,), (3,)), ((1, 2), ())), dtype=[np.uint8], gen_policy='gen_tensor_list_diff_shape'),
            ],
        ),
    ),
}
