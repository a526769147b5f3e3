"""Loss functions and their modules.

Probabilities keep away from 0 and 1, where the gradient has no bound; targets
of margins are 1 and -1.
"""
import torch
from plumb import *


def pair(low=-2, high=2, tlow=-2, thigh=2, target_grad=True):
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=low, high=high)
    return x, random_tensor(ndim=2, dim0=a, dim1=b, low=tlow, high=thigh, requires_grad=target_grad)


def signs(n):
    s = random_tensor(ndim=1, dim0=n, low=0, high=2, dtype=int, requires_grad=False)
    return s * 2 - 1


@autotest()
def test_mse_loss():
    x, t = pair()
    return torch.nn.functional.mse_loss(x, t, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_mse_loss_broadcast():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), dim1=3)
    return torch.nn.functional.mse_loss(x, random_tensor(ndim=0), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_mse_loss_module():
    x, t = pair()
    m = torch.nn.MSELoss(reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_mse_loss_legacy():
    x, t = pair()
    return torch.nn.functional.mse_loss(x, t, size_average=random_bool() | nothing(), reduce=random_bool() | nothing())


@autotest()
def test_l1_loss():
    x, t = pair()
    return torch.nn.functional.l1_loss(x, t, reduction=oneof("none", "mean", "sum"))


@autotest(auto_backward=False)
def test_l1_loss_integers():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-9, high=9, dtype=int)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=-9, high=9, dtype=int)
    return torch.nn.functional.l1_loss(x, t, reduction=oneof("none", "sum"))


@autotest()
def test_l1_loss_module():
    x, t = pair()
    m = torch.nn.L1Loss(reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_smooth_l1_loss():
    x, t = pair()
    return torch.nn.functional.smooth_l1_loss(x, t, reduction=oneof("none", "mean", "sum"), beta=random(0.1, 2.0).to(float) | nothing())


@autotest()
def test_smooth_l1_loss_zero():
    x, t = pair()
    return torch.nn.functional.smooth_l1_loss(x, t, beta=0.0)


@autotest()
def test_smooth_l1_loss_module():
    x, t = pair()
    m = torch.nn.SmoothL1Loss(reduction=oneof("none", "mean", "sum") | nothing(), beta=random(0.1, 2.0).to(float) | nothing())
    return m(x, t)


@autotest()
def test_huber_loss():
    x, t = pair()
    return torch.nn.functional.huber_loss(x, t, reduction=oneof("none", "mean", "sum"), delta=random(0.1, 2.0).to(float) | nothing())


@autotest()
def test_huber_loss_module():
    x, t = pair()
    m = torch.nn.HuberLoss(reduction=oneof("none", "mean", "sum") | nothing(), delta=random(0.1, 2.0).to(float) | nothing())
    return m(x, t)


@autotest()
def test_binary_cross_entropy():
    x, t = pair(0.05, 0.95, 0, 1)
    return torch.nn.functional.binary_cross_entropy(x, t, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_binary_cross_entropy_weight():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=0.05, high=0.95)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=1, requires_grad=False)
    w = random_tensor(ndim=1, dim0=b, low=0, high=2, requires_grad=False)
    return torch.nn.functional.binary_cross_entropy(x, t, weight=w, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_binary_cross_entropy_with_logits():
    x, t = pair(-4, 4, 0, 1)
    return torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_binary_cross_entropy_with_logits_weights():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-4, high=4)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=1, requires_grad=False)
    w = random_tensor(ndim=1, dim0=b, low=0, high=2, requires_grad=False)
    p = random_tensor(ndim=1, dim0=b, low=0.1, high=3, requires_grad=False)
    return torch.nn.functional.binary_cross_entropy_with_logits(x, t, weight=constant(w) | nothing(), pos_weight=p, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_kl_div():
    x, t = pair(-4, 0, 0.05, 1)
    return torch.nn.functional.kl_div(x, t, reduction=oneof("none", "mean", "sum", "batchmean"))


@autotest()
def test_kl_div_log_target():
    x, t = pair(-4, 0, -4, 0)
    return torch.nn.functional.kl_div(x, t, reduction=oneof("none", "mean", "sum", "batchmean"), log_target=True)


@autotest()
def test_soft_margin_loss():
    x, t = pair(-3, 3, -1, 1, False)
    return torch.nn.functional.soft_margin_loss(x, t, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_poisson_nll_loss():
    x, t = pair(0.1, 3, 0.05, 4)
    return torch.nn.functional.poisson_nll_loss(x, t, log_input=random_bool(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_poisson_nll_loss_full():
    # never 1, where the approximation begins
    x, t = pair(0.1, 3, 1.1, 4, False)
    return torch.nn.functional.poisson_nll_loss(x, t, random_bool(), True, eps=random(0.001, 0.1).to(float))


@autotest()
def test_gaussian_nll_loss():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    t = random_tensor(ndim=2, dim0=a, dim1=b)
    v = random_tensor(ndim=2, dim0=a, dim1=oneof(b, 1), low=0.1, high=2)
    return torch.nn.functional.gaussian_nll_loss(x, t, v, full=random_bool(), eps=random(0.001, 0.05).to(float) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_nll_loss():
    n, c = random(1, 6), random(2, 6).to(int)
    x = random_tensor(ndim=2, dim0=n, dim1=c, low=-3, high=0)
    t = random_tensor(ndim=1, dim0=n, low=0, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    return torch.nn.functional.nll_loss(x, t, weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_nll_loss_ignore():
    n, c = random(2, 6), random(2, 6).to(int)
    x = random_tensor(ndim=3, dim0=n, dim1=c, dim2=7, low=-3, high=0)
    t = random_tensor(ndim=2, dim0=n, dim1=7, low=-1, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    return torch.nn.functional.nll_loss(x, t, weight=constant(w) | nothing(), ignore_index=-1, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_nll_loss_one():
    x = random_tensor(ndim=1, dim0=5, low=-3, high=0)
    t = random_tensor(ndim=0, low=0, high=5, dtype=int, requires_grad=False)
    return torch.nn.functional.nll_loss(x, t)


@autotest()
def test_cross_entropy():
    n, c = random(1, 6), random(2, 6).to(int)
    x = random_tensor(ndim=2, dim0=n, dim1=c, low=-3, high=3)
    t = random_tensor(ndim=1, dim0=n, low=0, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    return torch.nn.functional.cross_entropy(x, t, weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_cross_entropy_smoothing():
    n, c, d = random(2, 6), random(2, 6).to(int), random(2, 6)
    x = random_tensor(ndim=4, dim0=n, dim1=c, dim2=d, dim3=3, low=-3, high=3)
    t = random_tensor(ndim=3, dim0=n, dim1=d, dim2=3, low=-1, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    return torch.nn.functional.cross_entropy(
        x, t, weight=constant(w) | nothing(), ignore_index=-1, reduction=oneof("none", "mean", "sum"), label_smoothing=random(0.01, 1.0).to(float)
    )


@autotest()
def test_cross_entropy_one():
    x = random_tensor(ndim=1, dim0=5, low=-3, high=3)
    t = random_tensor(ndim=0, low=0, high=5, dtype=int, requires_grad=False)
    return torch.nn.functional.cross_entropy(x, t, label_smoothing=random(0.0, 0.5).to(float) | nothing())


@autotest()
def test_cross_entropy_probabilities():
    n, c, d = random(1, 6), random(2, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=n, dim1=c, dim2=d, low=-3, high=3)
    t = random_tensor(ndim=3, dim0=n, dim1=c, dim2=d, low=0, high=1)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2)
    return torch.nn.functional.cross_entropy(
        x, t, weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum"), label_smoothing=random(0.0, 1.0).to(float) | nothing()
    )


@autotest()
def test_binary_cross_entropy_module():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=0.05, high=0.95)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=1, requires_grad=False)
    w = random_tensor(ndim=1, dim0=b, low=0, high=2, requires_grad=False)
    m = torch.nn.BCELoss(weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_binary_cross_entropy_with_logits_module():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-4, high=4)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=1, requires_grad=False)
    w = random_tensor(ndim=1, dim0=b, low=0.1, high=2, requires_grad=False)
    m = torch.nn.BCEWithLogitsLoss(weight=constant(w) | nothing(), pos_weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_kl_div_module():
    x, t = pair(-4, 0, 0.05, 1)
    m = torch.nn.KLDivLoss(reduction=oneof("none", "mean", "sum", "batchmean") | nothing(), log_target=random_bool() | nothing())
    return m(x, t)


@autotest()
def test_soft_margin_loss_module():
    x, t = pair(-3, 3, -1, 1, False)
    m = torch.nn.SoftMarginLoss(reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_poisson_nll_loss_module():
    x, t = pair(0.1, 3, 1.1, 4)
    m = torch.nn.PoissonNLLLoss(log_input=random_bool() | nothing(), full=random_bool() | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_gaussian_nll_loss_module():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    t = random_tensor(ndim=2, dim0=a, dim1=b)
    v = random_tensor(ndim=1, dim0=a, low=0.1, high=2)
    m = torch.nn.GaussianNLLLoss(full=random_bool() | nothing(), eps=random(0.001, 0.05) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t, v)


@autotest()
def test_nll_loss_module():
    n, c = random(1, 6), random(2, 6).to(int)
    x = random_tensor(ndim=2, dim0=n, dim1=c, low=-3, high=0)
    t = random_tensor(ndim=1, dim0=n, low=0, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    m = torch.nn.NLLLoss(weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_cross_entropy_module():
    n, c = random(2, 6), random(2, 6).to(int)
    x = random_tensor(ndim=3, dim0=n, dim1=c, dim2=4, low=-3, high=3)
    t = random_tensor(ndim=2, dim0=n, dim1=4, low=-1, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    m = torch.nn.CrossEntropyLoss(weight=constant(w) | nothing(), ignore_index=-1, label_smoothing=random(0.0, 0.5) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    m.train(random())
    return m(x, t)


@autotest()
def test_hinge_embedding_loss():
    a = random(1, 6)
    x = random_tensor(ndim=2, dim0=3, dim1=a, low=-2, high=2)
    return torch.nn.functional.hinge_embedding_loss(x, signs(a), margin=random(0.1, 2.0).to(float) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_hinge_embedding_loss_module():
    a = random(1, 6)
    x = random_tensor(ndim=1, dim0=a, low=-2, high=2)
    m = torch.nn.HingeEmbeddingLoss(margin=random(0.1, 2.0) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, signs(a))


@autotest()
def test_margin_ranking_loss():
    a = random(1, 6)
    x = random_tensor(ndim=1, dim0=a, low=-2, high=2)
    y = random_tensor(ndim=1, dim0=a, low=-2, high=2)
    return torch.nn.functional.margin_ranking_loss(x, y, signs(a), margin=random(0.1, 2.0).to(float) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_margin_ranking_loss_module():
    a = random(1, 6)
    x = random_tensor(ndim=1, dim0=a, low=-2, high=2)
    y = random_tensor(ndim=1, dim0=a, low=-2, high=2)
    m = torch.nn.MarginRankingLoss(margin=random(0.1, 2.0) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, y, signs(a))


@autotest()
def test_cosine_embedding_loss():
    a, b = random(1, 6), random(2, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=0.1, high=2)
    y = random_tensor(ndim=2, dim0=a, dim1=b, low=0.1, high=2)
    return torch.nn.functional.cosine_embedding_loss(x, y, signs(a), margin=random(-1.0, 0.5).to(float) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_cosine_embedding_loss_module():
    a, b = random(1, 6), random(2, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=0.1, high=2)
    y = random_tensor(ndim=2, dim0=a, dim1=b, low=0.1, high=2)
    m = torch.nn.CosineEmbeddingLoss(margin=random(-1.0, 0.5) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, y, signs(a))


@autotest()
def test_triplet_margin_loss():
    a, b = random(1, 6), random(2, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-2, high=2)
    y = random_tensor(ndim=2, dim0=a, dim1=b, low=-2, high=2)
    z = random_tensor(ndim=2, dim0=a, dim1=b, low=-2, high=2)
    return torch.nn.functional.triplet_margin_loss(
        x, y, z, margin=random(0.1, 3.0).to(float) | nothing(), p=oneof(1.0, 2.0, 3.0) | nothing(), eps=random(0.001, 0.1).to(float), swap=random_bool() | nothing(), reduction=oneof("none", "mean", "sum")
    )


@autotest()
def test_triplet_margin_loss_module():
    b = random(2, 6)
    x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=b, low=-2, high=2)
    y = random_tensor(ndim=3, dim0=2, dim1=3, dim2=b, low=-2, high=2)
    z = random_tensor(ndim=3, dim0=2, dim1=3, dim2=b, low=-2, high=2)
    m = torch.nn.TripletMarginLoss(margin=random(0.1, 3.0) | nothing(), eps=0.01, swap=random_bool() | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, y, z)


@autotest()
def test_multilabel_soft_margin_loss():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-3, high=3)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=1)
    w = random_tensor(ndim=1, dim0=b, low=0.1, high=2)
    return torch.nn.functional.multilabel_soft_margin_loss(x, t, weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum"))


@autotest()
def test_multilabel_soft_margin_loss_module():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-3, high=3)
    t = random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=1)
    w = random_tensor(ndim=1, dim0=b, low=0.1, high=2, requires_grad=False)
    m = torch.nn.MultiLabelSoftMarginLoss(weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_multi_margin_loss():
    n, c = random(1, 6), random(1, 6).to(int)
    x = random_tensor(ndim=2, dim0=n, dim1=c, low=-3, high=3)
    t = random_tensor(ndim=1, dim0=n, low=0, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    return torch.nn.functional.multi_margin_loss(
        x, t, p=oneof(1, 2) | nothing(), margin=random(0.1, 2.0).to(float) | nothing(), weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum")
    )


@autotest()
def test_multi_margin_loss_module():
    n, c = random(1, 6), random(2, 6).to(int)
    x = random_tensor(ndim=2, dim0=n, dim1=c, low=-3, high=3)
    t = random_tensor(ndim=1, dim0=n, low=0, high=c, dtype=int, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c, low=0.1, high=2, requires_grad=False)
    m = torch.nn.MultiMarginLoss(p=oneof(1, 2) | nothing(), margin=random(0.1, 2.0) | nothing(), weight=constant(w) | nothing(), reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_multilabel_margin_loss():
    n, c = random(1, 6), random(1, 6).to(int)
    x = random_tensor(ndim=2, dim0=n, dim1=c, low=-3, high=3)
    t = random_tensor(ndim=2, dim0=n, dim1=c, low=-1, high=c, dtype=int, requires_grad=False)
    return torch.nn.functional.multilabel_margin_loss(x, t, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_multilabel_margin_loss_module():
    c = random(1, 6).to(int)
    x = random_tensor(ndim=1, dim0=c, low=-3, high=3)
    t = random_tensor(ndim=1, dim0=c, low=-1, high=c, dtype=int, requires_grad=False)
    m = torch.nn.MultiLabelMarginLoss(reduction=oneof("none", "mean", "sum") | nothing())
    return m(x, t)


@autotest()
def test_ctc_loss():
    n, c, t = random(1, 4), random(3, 6).to(int), random(6, 9).to(int)
    x = random_tensor(ndim=3, dim0=t, dim1=n, dim2=c, low=-3, high=3)
    targets = random_tensor(ndim=2, dim0=n, dim1=3, low=1, high=c, dtype=int, requires_grad=False)
    times = random_tensor(ndim=1, dim0=n, low=5, high=t, dtype=int, requires_grad=False)
    counts = random_tensor(ndim=1, dim0=n, low=0, high=4, dtype=int, requires_grad=False)
    p = torch.nn.functional.log_softmax(x, 2)
    return torch.nn.functional.ctc_loss(p, targets, times, counts, reduction=oneof("none", "mean", "sum"), zero_infinity=random_bool() | nothing())


@autotest()
def test_ctc_loss_raw():
    # as the documentation does it: the gradient of the log-probabilities themselves
    c = random(3, 6).to(int)
    x = random_tensor(ndim=3, dim0=8, dim1=2, dim2=c, low=-3, high=-1)
    targets = random_tensor(ndim=1, dim0=5, low=0, high=c.to(int) - 1, dtype=int, requires_grad=False)
    return torch.nn.functional.ctc_loss(x, targets, (8, 7), (3, 2), blank=c.to(int) - 1, reduction=oneof("none", "mean", "sum"))


@autotest()
def test_ctc_loss_impossible():
    # three labels in two steps: an infinite loss, and 0 in its place
    x = random_tensor(ndim=3, dim0=6, dim1=2, dim2=4, low=-3, high=-1)
    targets = random_tensor(ndim=2, dim0=2, dim1=3, low=1, high=4, dtype=int, requires_grad=False)
    return torch.nn.functional.ctc_loss(x, targets, (6, 2), (3, 3), reduction=oneof("none", "mean", "sum"), zero_infinity=True)


@autotest()
def test_ctc_loss_module():
    n, c = random(1, 4), random(3, 6).to(int)
    x = random_tensor(ndim=3, dim0=8, dim1=n, dim2=c, low=-3, high=3)
    targets = random_tensor(ndim=2, dim0=n, dim1=3, low=1, high=c, dtype=int, requires_grad=False)
    times = random_tensor(ndim=1, dim0=n, low=6, high=9, dtype=int, requires_grad=False)
    counts = random_tensor(ndim=1, dim0=n, low=1, high=4, dtype=int, requires_grad=False)
    m = torch.nn.CTCLoss(blank=0, reduction=oneof("none", "mean", "sum") | nothing(), zero_infinity=random_bool() | nothing())
    return m(torch.nn.functional.log_softmax(x, 2), targets, times, counts)
