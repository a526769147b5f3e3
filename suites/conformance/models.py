# The functions that training steps of known networks call: `plumb conform run
# --model NAME` leaves the cases of these. Written from the networks' published
# definitions; a file of your own, in this form, is taken by --models.

step = ['add', 'mul', 'div', 'sub', 'sgd', 'sum', 'mean', 'clip_grad_norm_']
adam_step = ['add', 'mul', 'div', 'sub', 'adamw', 'sum', 'mean', 'sqrt', 'clip_grad_norm_']
classify = ['linear', 'addmm', 'cross_entropy', 'log_softmax', 'nll_loss', 'topk', 'eq', 'transpose', 'expand']
conv = ['conv2d', 'batch_norm', 'relu']
pyramid = ['interpolate', 'max_pool2d', 'cat', 'stack', 'permute', 'sigmoid', 'exp', 'log', 'where', 'gather', 'nonzero',
           'index_select', 'index', 'index_put', 'masked_select', 'masked_fill', 'max', 'min', 'maximum', 'minimum', 'clamp',
           'sort', 'topk', 'nms', 'ge', 'gt', 'lt', 'le', 'eq', 'ne', 'logical_and', 'logical_not', 'bitwise_and', 'any', 'all',
           'arange', 'meshgrid', 'split', 'select', 'slice_op', 'abs', 'floor', 'log2', 'one_hot', 'unique', 'randperm',
           'zeros', 'ones', 'fill_', 'copy_', 'cast_dtype', 'smooth_l1_loss', 'binary_cross_entropy_with_logits', 'isnan']
transformer = ['linear', 'matmul', 'bmm', 'softmax', 'layer_norm', 'gelu', 'dropout', 'permute', 'transpose', 'add', 'mul',
               'cat', 'split', 'expand', 'cast_dtype', 'slice_op', 'stack']
segment = conv + ['interpolate', 'cat', 'adaptive_avg_pool2d', 'dropout2d', 'cross_entropy', 'log_softmax', 'nll_loss', 'argmax',
                  'topk', 'eq', 'ne', 'masked_select', 'index', 'cast_dtype']
detector = conv + pyramid + step
two_stage = detector + ['roi_align', 'linear', 'cross_entropy', 'softmax', 'log_softmax', 'nll_loss', 'l1_loss']

model_op_list = {
    # classification
    'resnet50': conv + step + classify + ['max_pool2d', 'adaptive_avg_pool2d'],
    'resnet101': conv + step + classify + ['max_pool2d', 'adaptive_avg_pool2d'],
    'seresnet50': conv + step + classify + ['max_pool2d', 'adaptive_avg_pool2d', 'sigmoid'],
    'densenet': conv + step + classify + ['max_pool2d', 'avg_pool2d', 'adaptive_avg_pool2d', 'cat'],
    'vgg16': ['conv2d', 'relu', 'dropout', 'max_pool2d', 'adaptive_avg_pool2d'] + step + classify,
    'inceptionv3': conv + step + classify + ['max_pool2d', 'avg_pool2d', 'adaptive_avg_pool2d', 'cat', 'dropout'],
    'mobilenet_v2': conv + step + classify + ['hardtanh', 'adaptive_avg_pool2d'],
    'mobilenet_v3': conv + step + classify + ['hardswish', 'hardtanh', 'clamp', 'adaptive_avg_pool2d', 'dropout'],
    'shufflenet_v2': conv + step + classify + ['max_pool2d', 'cat', 'split', 'transpose', 'mean'],
    'efficientnet': conv + step + classify + ['silu', 'sigmoid', 'adaptive_avg_pool2d', 'dropout'],
    'repvgg': conv + step + classify + ['adaptive_avg_pool2d'],
    'convnext': ['conv2d'] + transformer + adam_step + classify,
    'vit': ['conv2d'] + transformer + adam_step + classify,
    'swin': ['conv2d', 'roll', 'pad', 'index', 'masked_fill', 'ne', 'eq'] + transformer + adam_step + classify,
    # detection
    'ssd300': ['conv2d', 'relu', 'max_pool2d', 'norm', 'sqrt', 'pow'] + pyramid + step + ['cross_entropy', 'softmax'],
    'retinanet': detector + ['sigmoid_focal_loss'],
    'faster_rcnn': two_stage,
    'mask_rcnn': two_stage + ['conv_transpose2d'],
    'cascade_rcnn': two_stage,
    'atss': detector + ['sigmoid_focal_loss', 'group_norm', 'std', 'sqrt'],
    'fcos': detector + ['sigmoid_focal_loss', 'group_norm', 'sqrt'],
    'centernet': detector + ['conv_transpose2d', 'pow'],
    'solo': detector + ['sigmoid_focal_loss', 'group_norm', 'linspace', 'pow'],
    'dyhead': detector + ['sigmoid_focal_loss', 'group_norm', 'hardtanh', 'adaptive_avg_pool2d'],
    'yolov3': ['conv2d', 'batch_norm', 'leaky_relu', 'binary_cross_entropy', 'mse_loss'] + pyramid + step,
    'yolov5': ['conv2d', 'batch_norm', 'silu', 'atan', 'pow'] + pyramid + step,
    'detr': ['batch_norm', 'relu', 'cumsum', 'cdist', 'sin', 'cos', 'pow', 'l1_loss', 'cross_entropy', 'conv2d'] + transformer + adam_step + pyramid,
    'pointpillars': conv + step + pyramid + ['conv_transpose2d', 'sin', 'cos', 'sigmoid_focal_loss', 'scatter', 'cross_entropy'],
    # segmentation
    'unet': segment + step + ['max_pool2d', 'conv_transpose2d'],
    'fcn': segment + step + ['max_pool2d'],
    'pspnet': segment + step + ['max_pool2d'],
    'upernet': segment + step + ['max_pool2d'],
    'deeplabv3': segment + step + ['max_pool2d'],
    'deeplabv3plus': segment + step + ['max_pool2d'],
    # poses
    'hrnet': conv + step + ['interpolate', 'mse_loss', 'adam', 'sqrt'],
    'deeppose': conv + step + ['linear', 'adaptive_avg_pool2d', 'max_pool2d', 'smooth_l1_loss', 'adam', 'sqrt'],
    # text in images
    'crnn': conv + ['max_pool2d', 'ctc_loss', 'log_softmax', 'linear', 'sigmoid', 'tanh', 'adadelta', 'permute', 'cat'],
    'dbnet': conv + step + ['max_pool2d', 'interpolate', 'cat', 'conv_transpose2d', 'sigmoid', 'binary_cross_entropy', 'topk', 'l1_loss'],
    'sar': conv + adam_step + ['max_pool2d', 'linear', 'sigmoid', 'tanh', 'softmax', 'embedding', 'cross_entropy', 'masked_fill', 'dropout', 'stack', 'cat', 'adam'],
    # video
    'tsn': conv + step + classify + ['max_pool2d', 'adaptive_avg_pool2d', 'dropout'],
    'slowfast': ['conv3d', 'batch_norm', 'relu', 'max_pool3d', 'adaptive_avg_pool3d', 'cat', 'dropout'] + step + classify,
    'stgcn': conv + step + classify + ['adaptive_avg_pool2d', 'matmul', 'permute'],
    # language
    'llama': ['embedding', 'rms_norm', 'rotary_emb', 'silu', 'triu', 'where', 'cross_entropy', 'log_softmax', 'nll_loss',
              'flash_attention', 'context_attention', 'token_attention', 'token_softmax_reducev', 'destindex_copy_kv',
              'apply_penalty', 'rsqrt', 'pow', 'neg', 'sin', 'cos', 'cumsum', 'sort', 'topk', 'multinomial'] + transformer + adam_step,
}
