import torch


def make_match_reference(reference, rtol=1e-4, atol=1e-4):
    def check(data, output):
        expected = reference(data)
        if output.shape != expected.shape:
            return False, "shape is %s, expected %s" % (tuple(output.shape), tuple(expected.shape))
        if not torch.allclose(output, expected, rtol=rtol, atol=atol):
            return False, "largest difference is %g" % (output - expected).abs().max().item()
        return True, ""

    return check
