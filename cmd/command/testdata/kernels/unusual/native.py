"""A library in C, built when the file is imported, called by ctypes."""
import ctypes
import os
import subprocess
import tempfile

import torch

SOURCE = r"""
#include <math.h>
#include <stdint.h>
void softmax(const float *x, float *y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++) {
    const float *a = x + r * n; float *b = y + r * n; float m = -INFINITY; double s = 0; int bad = 0;
    for (int64_t i = 0; i < n; i++) { if (a[i] > m) m = a[i]; if (a[i] != a[i]) bad = 1; }
    for (int64_t i = 0; i < n; i++) s += exp((double)a[i] - m);
    for (int64_t i = 0; i < n; i++) b[i] = bad ? NAN : (float)(exp((double)a[i] - m) / s);
  }
}
void dots(const float *x, const float *y, float *z, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++) {
    double s[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) for (int k = 0; k < 4; k++) s[k] += (double)x[r * n + i + k] * y[r * n + i + k];
    for (; i < n; i++) s[0] += (double)x[r * n + i] * y[r * n + i];
    z[r] = (float)(s[0] + s[1] + s[2] + s[3]);
  }
}
void dots_past(const float *x, const float *y, float *z, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++) {
    float s = 0;
    for (int64_t i = 0; i < n; i += 4) for (int k = 0; k < 4; k++) s += (i + k < n) * x[r * n + i + k] * y[r * n + i + k];
    z[r] = s;
  }
}
void difference(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = x[i + 1] - x[i]; if (n) y[n - 1] = 0; }
void difference_back(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = x[i] - x[i - 1]; if (n) y[0] = 0; }
void bias(const float *x, const float *b, float *y, int64_t rows, int64_t n) { for (int64_t i = 0; i <= rows * n; i++) { float v = x[i < rows * n ? i : 0] + b[i % n]; y[i] = v > 0 ? v : 0; } }
"""

_dir = tempfile.mkdtemp()
with open(os.path.join(_dir, "k.c"), "w") as f:
    f.write(SOURCE)
subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", os.path.join(_dir, "k.so"), os.path.join(_dir, "k.c"), "-lm"], check=True)
lib = ctypes.CDLL(os.path.join(_dir, "k.so"))


def _p(t):
    return ctypes.c_void_p(t.data_ptr())


def _n(n):
    return ctypes.c_int64(n)


def softmax(x):
    x = x.detach().contiguous()
    y = torch.empty_like(x)
    lib.softmax(_p(x), _p(y), _n(x.shape[0]), _n(x.shape[1]))
    return y


def _dots(f, x, y):
    x, y = x.detach().contiguous(), y.detach().contiguous()
    z = torch.empty(x.shape[0])
    f(_p(x), _p(y), _p(z), _n(x.shape[0]), _n(x.shape[1]))
    return z


def dots(x, y):
    return _dots(lib.dots, x, y)


def dots_past(x, y):
    return _dots(lib.dots_past, x, y)


def dots_strides(x, y):
    z = torch.empty(x.shape[0])
    lib.dots(_p(x.detach()), _p(y.detach()), _p(z), _n(x.shape[0]), _n(x.shape[1]))
    return z


def difference(x):
    x = x.detach().contiguous()
    y = torch.empty_like(x)
    lib.difference(_p(x), _p(y), _n(x.numel()))
    return y


def difference_back(x):
    x = x.detach().contiguous()
    y = torch.empty_like(x)
    lib.difference_back(_p(x), _p(y), _n(x.numel()))
    return y


def bias_relu_past(x, b):
    x, b = x.detach().contiguous(), b.detach().contiguous()
    y = torch.empty_like(x)
    lib.bias(_p(x), _p(b), _p(y), _n(x.shape[0]), _n(x.shape[1]))
    return y
