// A small library with DIOPI's interface, for tests: it computes in double, one
// element after the other. $FAULT plants a fault in it.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What diopirt.h declares of it.
typedef struct { const int64_t *data; int64_t len; } diopiSize_t;
typedef struct { int stype; union { double fval; int64_t ival; }; } diopiScalar_t;
typedef void *ctx_t, *tensor_t;
typedef const void *const_t;
typedef int error_t;
enum { success = 0, failed = 1, not_implemented = 13, bad_dtype = 1000, i32 = 4, i64 = 6, f32 = 9, f64 = 10, boolean = 11 };
error_t diopiGetTensorData(tensor_t, void **);
error_t diopiGetTensorDataConst(const_t, const void **);
error_t diopiGetTensorShape(const_t, diopiSize_t *);
error_t diopiGetTensorStride(const_t, diopiSize_t *);
error_t diopiGetTensorDtype(const_t, int *);
error_t diopiGetTensorNumel(const_t, int64_t *);
error_t diopiGeneratorGetSeedAndOffset(void *, uint64_t *, uint64_t *);
error_t diopiGeneratorSetSeedAndOffset(void *, uint64_t, uint64_t);
error_t diopiRequireTensor(ctx_t, tensor_t *, const diopiSize_t *, const diopiSize_t *, int, int);

static const char *fault = "";
static bool has(const char *name) { return !strcmp(fault, name); }

__attribute__((constructor)) static void load(void) {
	if (getenv("FAULT")) fault = getenv("FAULT");
	if (has("prints")) { printf("device 0 is ready\n"); fflush(stdout); }
}

const char *diopiGetVendorName(void) { return "toy"; }
const char *diopiGetImplVersion(void) { return "1.0"; }
const char *diopiGetLastErrorString(void) { return "the device is cold"; }

// view is a tensor with its elements in row-major order.
typedef struct { const int64_t *shape, *stride; int64_t rank, count; int dtype; char *data; } view;

static view of(const_t t) {
	view v;
	diopiSize_t s;
	diopiGetTensorShape(t, &s), v.shape = s.data, v.rank = s.len;
	diopiGetTensorStride(t, &s), v.stride = s.data;
	diopiGetTensorDtype(t, &v.dtype);
	diopiGetTensorNumel(t, &v.count);
	diopiGetTensorDataConst(t, (const void **)&v.data);
	return v;
}

static bool known(const view *v) {
	return v->dtype == f32 || v->dtype == f64 || v->dtype == i32 || v->dtype == i64 || v->dtype == boolean;
}

static double load_at(const view *v, int64_t k) {
	switch (v->dtype) {
	case f32: return ((float *)v->data)[k];
	case f64: return ((double *)v->data)[k];
	case i32: return ((int32_t *)v->data)[k];
	case i64: return ((int64_t *)v->data)[k];
	}
	return ((bool *)v->data)[k];
}

static void store_at(view *v, int64_t k, double x) {
	switch (v->dtype) {
	case f32: ((float *)v->data)[k] = x; break;
	case f64: ((double *)v->data)[k] = x; break;
	case i32: ((int32_t *)v->data)[k] = x; break;
	case i64: ((int64_t *)v->data)[k] = x; break;
	default: ((bool *)v->data)[k] = x != 0;
	}
}

// place is where element i, counted in row-major order of shape, lies in a view
// that broadcasts to it.
static int64_t place(const view *v, const int64_t *shape, int64_t rank, int64_t i) {
	int64_t at = 0;
	for (int64_t d = rank - 1; d >= 0; d--) {
		int64_t k = i % shape[d], own = d - (rank - v->rank);
		i /= shape[d];
		if (own >= 0 && v->shape[own] != 1) at += k * v->stride[own];
	}
	return at;
}

static double get(const view *v, int64_t i) { return load_at(v, place(v, v->shape, v->rank, i)); }
static void set(view *v, int64_t i, double x) { store_at(v, place(v, v->shape, v->rank, i), x); }

typedef double (*unary)(double);
typedef double (*binary)(double, double, double);

static error_t each(tensor_t out, const_t in, unary f) {
	view y = of(out), x = of(in);
	if (!known(&y) || !known(&x)) return bad_dtype;
	for (int64_t i = 0; i < y.count; i++) set(&y, i, f(get(&x, i)));
	return success;
}

static error_t both(tensor_t out, const_t a, const_t b, double alpha, binary f) {
	view y = of(out), p = of(a), q = of(b);
	if (!known(&y) || !known(&p) || !known(&q)) return bad_dtype;
	for (int64_t i = 0; i < y.count; i++)
		set(&y, i, f(load_at(&p, place(&p, y.shape, y.rank, i)), load_at(&q, place(&q, y.shape, y.rank, i)), alpha));
	return success;
}

static double value(const diopiScalar_t *s) { return s->stype >= 8 && s->stype <= 10 ? s->fval : (double)s->ival; }

static error_t with(tensor_t out, const_t in, double other, double alpha, binary f) {
	view y = of(out), x = of(in);
	if (!known(&y) || !known(&x)) return bad_dtype;
	for (int64_t i = 0; i < y.count; i++) set(&y, i, f(get(&x, i), other, alpha));
	return success;
}

#define UNARY(NAME, EXPR) \
	static double NAME##_of(double x) { return EXPR; } \
	error_t diopi##NAME(ctx_t c, tensor_t out, const_t in) { (void)c; return each(out, in, NAME##_of); } \
	error_t diopi##NAME##Inp(ctx_t c, tensor_t t) { (void)c; return each(t, t, NAME##_of); }

UNARY(Relu, has("relu-nan") ? (x > 0 ? x : 0) : x < 0 ? 0 : x)
UNARY(Abs, fabs(x))
UNARY(Sqrt, sqrt(x))
UNARY(Sin, sin(x))
UNARY(Cos, cos(x))
UNARY(Log, log(x))
UNARY(Floor, floor(x))
UNARY(Ceil, ceil(x))
UNARY(Sigmoid, 1 / (1 + exp(-x)))
UNARY(Silu, has("silu") ? x * x : x / (1 + exp(-x))) // without a function of its gradient

static double neg_of(double x) { return -x; }
error_t diopiNeg(ctx_t c, tensor_t out, const_t in) {
	error_t rc = each(out, in, neg_of);
	view y = of(out);
	(void)c;
	if (rc == success && has("beyond") && y.dtype == f32) ((volatile float *)y.data)[y.count] = 1;
	if (rc == success && has("before") && y.dtype == f32) ((volatile float *)y.data)[-1] = 1;
	if (rc == success && has("far") && y.dtype == f32) ((volatile float *)y.data)[y.count + 4096] = 1;
	return rc;
}

static double exp_of(double x) { return exp(x); }
error_t diopiExp(ctx_t c, tensor_t out, const_t in) {
	(void)c;
	if (has("segfault")) *(volatile int *)8 = 1;
	if (has("aborts")) abort();
	if (has("leaks")) memset(malloc(64 << 20), 1, 64 << 20);
	if (has("exits")) exit(0);
	if (has("refuses")) return failed;
	if (has("not-implemented")) return not_implemented;
	if (has("writes-input")) { view x = of(in); set(&x, 0, 7); }
	return each(out, in, exp_of);
}

static double tanh_of(double x) { return tanh(x); }
error_t diopiTanh(ctx_t c, tensor_t out, const_t in) {
	(void)c;
	while (has("hangs")) {}
	return each(out, in, tanh_of);
}

#define BINARY(NAME, EXPR) \
	static double NAME##_of(double a, double b, double alpha) { (void)alpha; return EXPR; }
BINARY(add, a + alpha * b)
BINARY(sub, a - alpha * b)
BINARY(mul, a * b)
BINARY(quotient, alpha == 1 ? trunc(a / b) : alpha == 2 ? floor(a / b) : a / b)
BINARY(eq, a == b)
BINARY(gt, a > b)
BINARY(lt, a < b)
BINARY(greater, isnan(a) || a > b ? a : b)
BINARY(masked, has("relu-grad") ? a : b > alpha ? a : 0)
BINARY(sigmoid_grad, a * b * (1 - b))
BINARY(tanh_grad, a * (1 - b * b))

error_t diopiAdd(ctx_t c, tensor_t out, const_t a, const_t b, const diopiScalar_t *alpha) { (void)c; return both(out, a, b, value(alpha), add_of); }
error_t diopiAddInp(ctx_t c, tensor_t a, const_t b, const diopiScalar_t *alpha) { (void)c; return both(a, a, b, value(alpha), has("add-inp") ? sub_of : add_of); }
error_t diopiAddScalar(ctx_t c, tensor_t out, const_t a, const diopiScalar_t *b, const diopiScalar_t *alpha) { (void)c; return with(out, a, value(b), value(alpha), add_of); }
error_t diopiSub(ctx_t c, tensor_t out, const_t a, const_t b, const diopiScalar_t *alpha) { (void)c; return both(out, a, b, value(alpha), sub_of); }
error_t diopiSubScalar(ctx_t c, tensor_t out, const_t a, const diopiScalar_t *b, const diopiScalar_t *alpha) { (void)c; return with(out, a, value(b), value(alpha), sub_of); }
error_t diopiMul(ctx_t c, tensor_t out, const_t a, const_t b) { (void)c; return both(out, a, b, 0, mul_of); }
error_t diopiMulScalar(ctx_t c, tensor_t out, const_t a, const diopiScalar_t *b) { (void)c; return with(out, a, value(b), 0, mul_of); }
error_t diopiDiv(ctx_t c, tensor_t out, const_t a, const_t b, int mode) { (void)c; return both(out, a, b, mode, quotient_of); }
error_t diopiEq(ctx_t c, tensor_t out, const_t a, const_t b) { (void)c; return both(out, a, b, 0, eq_of); }
error_t diopiGt(ctx_t c, tensor_t out, const_t a, const_t b) { (void)c; return both(out, a, b, 0, gt_of); }
error_t diopiLt(ctx_t c, tensor_t out, const_t a, const_t b) { (void)c; return both(out, a, b, 0, lt_of); }
error_t diopiMaximum(ctx_t c, tensor_t out, const_t a, const_t b) { (void)c; return both(out, a, b, 0, greater_of); }
error_t diopiThresholdBackward(ctx_t c, tensor_t out, const_t grad, const_t in, const diopiScalar_t *t) { (void)c; return both(out, grad, in, value(t), masked_of); }
error_t diopiSigmoidBackward(ctx_t c, tensor_t out, const_t grad, const_t result) { (void)c; return both(out, grad, result, 0, sigmoid_grad_of); }
error_t diopiTanhBackward(ctx_t c, tensor_t out, const_t grad, const_t result) { (void)c; return both(out, grad, result, 0, tanh_grad_of); }

// summed adds up the elements of x over dims (all when there are none), each times by.
static error_t summed(tensor_t out, const_t in, diopiSize_t dims, bool mean) {
	view y = of(out), x = of(in);
	if (!known(&y) || !known(&x)) return bad_dtype;
	double *sums = calloc(y.count + 1, sizeof *sums);
	for (int64_t i = 0; i < x.count; i++) {
		int64_t at = 0, rest = i, step = 1;
		for (int64_t d = x.rank - 1; d >= 0; d--) {
			bool gone = dims.len == 0;
			for (int64_t k = 0; k < dims.len; k++) gone = gone || (dims.data[k] + x.rank) % x.rank == d;
			if (!gone) at += rest % x.shape[d] * step, step *= x.shape[d];
			rest /= x.shape[d];
		}
		sums[at] += get(&x, i);
	}
	for (int64_t i = 0; i < y.count; i++) set(&y, i, mean ? sums[i] * y.count / x.count : sums[i]);
	free(sums);
	return success;
}

error_t diopiSum(ctx_t c, tensor_t out, const_t in, diopiSize_t dims) { (void)c; return summed(out, in, dims, false); }
error_t diopiMean(ctx_t c, tensor_t out, const_t in, diopiSize_t dims) { (void)c; return summed(out, in, dims, true); }

// rows calls f for each row of out along dim, with the places of its elements.
typedef struct { int64_t start, step, n; } row;
static row row_at(const view *v, int64_t dim, int64_t k) {
	int64_t inner = 1;
	for (int64_t d = dim + 1; d < v->rank; d++) inner *= v->shape[d];
	int64_t n = v->rank ? v->shape[dim] : 1;
	return (row){k / inner * inner * n + k % inner, inner, n};
}

static error_t softmax(tensor_t out, const_t in, int64_t dim, bool logs) {
	view y = of(out), x = of(in);
	if (!known(&y)) return bad_dtype;
	if (dim < 0) dim += x.rank;
	for (int64_t k = 0; x.count && k < x.count / (x.rank ? x.shape[dim] : 1); k++) {
		row r = row_at(&x, dim, k);
		double top = -INFINITY, sum = 0;
		for (int64_t i = 0; i < r.n; i++) top = fmax(top, get(&x, r.start + i * r.step));
		for (int64_t i = 0; i < r.n; i++) sum += exp(get(&x, r.start + i * r.step) - top);
		for (int64_t i = 0; i < r.n; i++) {
			double z = get(&x, r.start + i * r.step) - top;
			set(&y, r.start + i * r.step, logs ? z - log(sum) : exp(z) / sum);
		}
	}
	return success;
}

static error_t softmax_grad(tensor_t out, const_t grad, const_t result, int64_t dim, bool logs) {
	view d = of(out), g = of(grad), y = of(result);
	if (!known(&d)) return bad_dtype;
	if (dim < 0) dim += y.rank;
	for (int64_t k = 0; y.count && k < y.count / (y.rank ? y.shape[dim] : 1); k++) {
		row r = row_at(&y, dim, k);
		double sum = 0;
		for (int64_t i = 0; i < r.n; i++) sum += get(&g, r.start + i * r.step) * (logs ? 1 : get(&y, r.start + i * r.step));
		for (int64_t i = 0; i < r.n; i++) {
			double gi = get(&g, r.start + i * r.step), yi = get(&y, r.start + i * r.step);
			set(&d, r.start + i * r.step, logs ? gi - exp(yi) * sum : yi * (gi - sum));
		}
	}
	return success;
}

error_t diopiSoftmax(ctx_t c, tensor_t out, const_t in, int64_t dim) { (void)c; return softmax(out, in, dim, false); }
error_t diopiLogSoftmax(ctx_t c, tensor_t out, const_t in, int64_t dim) { (void)c; return softmax(out, in, dim, true); }
error_t diopiSoftmaxBackward(ctx_t c, tensor_t out, const_t grad, const_t y, int64_t dim) { (void)c; return softmax_grad(out, grad, y, dim, false); }
error_t diopiLogSoftmaxBackward(ctx_t c, tensor_t out, const_t grad, const_t y, int64_t dim) { (void)c; return softmax_grad(out, grad, y, dim, true); }

error_t diopiMm(ctx_t c, tensor_t out, const_t a, const_t b) {
	view y = of(out), p = of(a), q = of(b);
	(void)c;
	if (!known(&y)) return bad_dtype;
	int64_t k = p.shape[1], m = y.shape[1];
	for (int64_t i = 0; i < y.count; i++) {
		double sum = 0;
		for (int64_t j = 0; j < k; j++) sum += get(&p, i / m * k + j) * get(&q, j * m + i % m);
		set(&y, i, sum);
	}
	return success;
}

error_t diopiBmm(ctx_t c, tensor_t out, const_t a, const_t b) {
	view y = of(out), p = of(a), q = of(b);
	(void)c;
	if (!known(&y)) return bad_dtype;
	int64_t k = p.shape[2], n = y.shape[1], m = y.shape[2];
	for (int64_t i = 0; i < y.count; i++) {
		int64_t batch = i / (n * m), r = i / m % n;
		double sum = 0;
		for (int64_t j = 0; j < k; j++) sum += get(&p, (batch * n + r) * k + j) * get(&q, (batch * k + j) * m + i % m);
		set(&y, i, sum);
	}
	return success;
}

static error_t convolve(view *y, view *x, view *w, view *bias, const int64_t *stride, const int64_t *padding, const int64_t *dilation, int64_t groups) {
	int64_t C = x->shape[1], H = x->shape[2], W = x->shape[3], O = y->shape[1], P = y->shape[2], Q = y->shape[3], R = w->shape[2], S = w->shape[3], G = C / groups;
	for (int64_t i = 0; i < y->count; i++) {
		int64_t q = i % Q, p = i / Q % P, o = i / (Q * P) % O, n = i / (Q * P * O), first = o / (O / groups) * G;
		double sum = bias ? get(bias, o) : 0;
		for (int64_t k = 0; k < G * R * S; k++) {
			int64_t s = k % S, r = k / S % R, g = k / (S * R), h = p * stride[0] - padding[0] + r * dilation[0], v = q * stride[1] - padding[1] + s * dilation[1];
			if (h >= 0 && h < H && v >= 0 && v < W) sum += get(x, ((n * C + first + g) * H + h) * W + v) * get(w, ((o * G + g) * R + r) * S + s);
		}
		set(y, i, sum);
	}
	return success;
}

error_t diopiConvolution2d(ctx_t c, tensor_t out, const_t in, const_t weight, const_t bias, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
	static const int64_t ones[2] = {1, 1};
	view y = of(out), x = of(in), w = of(weight), b;
	(void)c;
	if (!known(&y)) return bad_dtype;
	if (x.rank != 4) return not_implemented;
	if (bias) b = of(bias);
	return convolve(&y, &x, &w, bias ? &b : NULL, stride.data, padding.data, has("conv-dilation") ? ones : dilation.data, groups);
}

error_t diopiCat(ctx_t c, tensor_t out, const_t *tensors, int64_t n, int64_t dim) {
	view y = of(out);
	int64_t inner = 1, start = 0;
	(void)c;
	if (!known(&y)) return bad_dtype;
	if (dim < 0) dim += y.rank;
	for (int64_t d = dim + 1; d < y.rank; d++) inner *= y.shape[d];
	for (int64_t k = 0; k < n; k++) {
		view x = of(tensors[k]);
		if (x.rank != y.rank) continue;
		for (int64_t i = 0; i < x.count; i++) {
			int64_t in = i % (x.shape[dim] * inner), o = i / (x.shape[dim] * inner);
			set(&y, o * y.shape[dim] * inner + start * inner + in, get(&x, i));
		}
		start += x.shape[dim];
	}
	return success;
}

error_t diopiIndexSelect(ctx_t c, tensor_t out, const_t in, int64_t dim, const_t index) {
	view y = of(out), x = of(in), at = of(index);
	int64_t inner = 1;
	(void)c;
	if (!known(&y)) return bad_dtype;
	if (!x.rank) return not_implemented;
	if (dim < 0) dim += x.rank;
	for (int64_t d = dim + 1; d < x.rank; d++) inner *= x.shape[d];
	for (int64_t i = 0; i < y.count; i++) {
		int64_t k = i / inner % y.shape[dim], o = i / inner / y.shape[dim];
		set(&y, (o * y.shape[dim] + k) * inner + i % inner, get(&x, (o * x.shape[dim] + (int64_t)get(&at, k)) * inner + i % inner));
	}
	return success;
}

error_t diopiPermute(ctx_t c, tensor_t out, const_t in, diopiSize_t dims) {
	view y = of(out), x = of(in);
	(void)c;
	if (!known(&y)) return bad_dtype;
	for (int64_t i = 0; i < y.count; i++) {
		int64_t at = 0;
		for (int64_t d = y.rank - 1, rest = i; d >= 0; rest /= y.shape[d--]) at += rest % y.shape[d] * x.stride[(dims.data[d] + y.rank) % y.rank];
		store_at(&y, place(&y, y.shape, y.rank, i), load_at(&x, at));
	}
	return success;
}

error_t diopiNonzero(ctx_t c, tensor_t *out, const_t in) {
	view x = of(in);
	int64_t found = 0;
	if (!known(&x)) return bad_dtype;
	for (int64_t i = 0; i < x.count; i++) found += get(&x, i) != 0;
	int64_t shape[2] = {found, x.rank};
	error_t rc = diopiRequireTensor(c, out, &(diopiSize_t){shape, 2}, NULL, i64, 1);
	if (rc != success) return rc;
	view y = of(*out);
	for (int64_t i = 0, k = 0; i < x.count; i++) {
		if (get(&x, i) == 0) continue;
		for (int64_t d = x.rank - 1, rest = i; d >= 0; rest /= x.shape[d--]) set(&y, k * x.rank + d, rest % x.shape[d]);
		k++;
	}
	return success;
}

error_t diopiMSELoss(ctx_t c, tensor_t out, const_t in, const_t target, int reduction) {
	view y = of(out), x = of(in), t = of(target);
	double sum = 0;
	(void)c;
	if (!known(&y)) return bad_dtype;
	if (x.count != t.count) return not_implemented;
	for (int64_t i = 0; i < x.count; i++) {
		double d = get(&x, i) - get(&t, i);
		sum += d * d;
		if (reduction == 0) set(&y, i, d * d);
	}
	if (reduction) set(&y, 0, reduction == 1 ? sum / x.count : sum);
	return success;
}

error_t diopiMSELossBackward(ctx_t c, tensor_t out, const_t grad, const_t in, const_t target, int reduction) {
	view d = of(out), g = of(grad), x = of(in), t = of(target);
	(void)c;
	if (!known(&d)) return bad_dtype;
	for (int64_t i = 0; i < x.count; i++)
		set(&d, i, 2 * (get(&x, i) - get(&t, i)) * get(&g, reduction ? 0 : i) / (reduction == 1 ? x.count : 1));
	return success;
}

// What DIOPI has as one function and PyTorch has not.

error_t diopiAdam(ctx_t c, tensor_t param, const_t grad, tensor_t m, tensor_t v, tensor_t most, float lr, float beta1, float beta2, float eps, float decay, int64_t step, bool amsgrad) {
	(void)c;
	view p = of(param), g = of(grad), a = of(m), b = of(v), top = amsgrad ? of(most) : b;
	if (has("adam-step")) step--;
	for (int64_t k = 0; k < p.count; k++) {
		double x = load_at(&p, k), d = load_at(&g, k) + decay * x;
		double mean = beta1 * load_at(&a, k) + (1 - beta1) * d, square = beta2 * load_at(&b, k) + (1 - beta2) * d * d;
		double high = amsgrad ? fmax(load_at(&top, k), square) : square;
		store_at(&a, k, mean), store_at(&b, k, square);
		if (amsgrad) store_at(&top, k, high);
		double root = sqrt(high) / sqrt(1 - pow(beta2, step)) + eps;
		store_at(&p, k, x - lr / (1 - pow(beta1, step)) * mean / root);
	}
	return success;
}

// rows are as many as the inverse root mean squares.
error_t diopiRMSNorm(ctx_t c, tensor_t out, tensor_t inverse, const_t in, diopiSize_t shape, const_t weight, const_t bias, double eps) {
	(void)c, (void)shape;
	if (bias) return not_implemented;
	view x = of(in), y = of(out), r = of(inverse), w = of(weight);
	int64_t wide = r.count ? x.count / r.count : 0;
	for (int64_t i = 0; i < r.count; i++) {
		double squares = 0;
		for (int64_t k = 0; k < wide; k++) squares += load_at(&x, i * wide + k) * load_at(&x, i * wide + k);
		double s = 1 / sqrt(squares / wide + (has("rms-eps") ? 0 : eps));
		store_at(&r, i, s);
		for (int64_t k = 0; k < wide; k++) store_at(&y, i * wide + k, load_at(&x, i * wide + k) * s * load_at(&w, k));
	}
	return success;
}

error_t diopiRMSNormBackward(ctx_t c, tensor_t dx, tensor_t dw, tensor_t db, const_t grad, const_t in, const_t weight, const_t bias, const_t inverse, diopiSize_t shape, double eps) {
	(void)c, (void)shape, (void)eps, (void)db, (void)bias;
	if (has("rms-refuses")) return failed;
	view x = of(in), g = of(grad), r = of(inverse), w = of(weight), to = of(dx), to_w = of(dw);
	int64_t wide = r.count ? x.count / r.count : 0;
	for (int64_t k = 0; k < wide; k++) {
		double sum = 0;
		for (int64_t i = 0; i < r.count; i++) sum += load_at(&g, i * wide + k) * load_at(&x, i * wide + k) * load_at(&r, i);
		store_at(&to_w, k, sum);
	}
	for (int64_t i = 0; i < r.count; i++) {
		double s = load_at(&r, i), dot = 0;
		for (int64_t k = 0; k < wide; k++) dot += load_at(&g, i * wide + k) * load_at(&w, k) * load_at(&x, i * wide + k) * s;
		for (int64_t k = 0; k < wide; k++)
			store_at(&to, i * wide + k, s * (load_at(&g, i * wide + k) * load_at(&w, k) - (has("rms-grad") ? 0 : load_at(&x, i * wide + k) * s * dot / wide)));
	}
	return success;
}

error_t diopiCopyInp(ctx_t c, const_t src, tensor_t dest) {
	view y = of(dest), x = of(src);
	(void)c;
	if (!known(&y) || !known(&x)) return bad_dtype;
	for (int64_t i = 0; i < y.count; i++) set(&y, i, load_at(&x, place(&x, y.shape, y.rank, has("copy") ? 0 : i)));
	return success;
}

error_t diopiEqual(ctx_t c, bool *out, const_t a, const_t b) {
	view x = of(a), y = of(b);
	(void)c;
	*out = x.rank == y.rank && !memcmp(x.shape, y.shape, x.rank * sizeof *x.shape);
	for (int64_t i = 0; *out && i < x.count; i++) *out = has("equal") || get(&x, i) == get(&y, i);
	return success;
}

error_t diopiClipGradNorm(ctx_t c, double *out, tensor_t *grads, int64_t n, double most, double p, bool strict) {
	double sum = 0;
	(void)c, (void)strict;
	for (int64_t k = has("clip"); k < n; k++) {
		view x = of(grads[k]);
		for (int64_t i = 0; i < x.count; i++) sum += pow(fabs(get(&x, i)), p);
	}
	*out = pow(sum, 1 / p);
	for (int64_t k = 0; k < n; k++) {
		view x = of(grads[k]);
		for (int64_t i = 0; i < x.count; i++) set(&x, i, get(&x, i) * fmin(1, most / (*out + 1e-6)));
	}
	return success;
}

static double uniform(uint64_t seed, uint64_t at) { // SplitMix64
	uint64_t z = seed + at * 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb, z ^= z >> 31;
	return (double)(z >> 40) / (1 << 24);
}

error_t diopiUniformInp(ctx_t c, tensor_t t, double from, double to, void *generator) {
	view x = of(t);
	uint64_t seed, at;
	(void)c;
	diopiGeneratorGetSeedAndOffset(generator, &seed, &at);
	for (int64_t i = 0; i < x.count; i++) {
		double u = uniform(seed, ++at);
		set(&x, i, from + (to - from) * (has("uniform") ? u * u : u));
	}
	diopiGeneratorSetSeedAndOffset(generator, seed, at);
	return success;
}

error_t diopiPool1d(ctx_t c, tensor_t out, const_t in, const char *mode, diopiSize_t size, diopiSize_t stride, diopiSize_t pad, diopiSize_t dilation, bool ceil_mode, bool exclusive, bool adaptive, diopiSize_t sizes) {
	view y = of(out), x = of(in);
	(void)c, (void)ceil_mode, (void)sizes;
	bool most = !strcmp(mode, "max");
	if (adaptive || dilation.data[0] != 1) return not_implemented;
	for (int64_t i = 0; i < y.count; i++) {
		int64_t wide = x.shape[x.rank - 1], row = i / y.shape[y.rank - 1] * wide, first = i % y.shape[y.rank - 1] * stride.data[0] - pad.data[0], n = 0;
		double sum = 0, top = -INFINITY;
		for (int64_t k = first; k < first + size.data[0]; k++)
			if (k >= 0 && k < wide) sum += get(&x, row + k), top = fmax(top, get(&x, row + k)), n++;
		set(&y, i, most ? top : sum / (exclusive != has("pool") ? n : size.data[0]));
	}
	return success;
}

error_t diopiFlashAttentionVarLen(ctx_t c, tensor_t out, tensor_t lse, void *generator, const_t q, const_t k, const_t v, const_t ends, const_t key_ends, const_t slopes, int32_t most, int32_t most_keys, float drop, float scale, bool causal, int32_t left, int32_t right) {
	view y = of(out), l = of(lse), Q = of(q), K = of(k), V = of(v), at = of(ends);
	int64_t heads = Q.shape[1], d = Q.shape[2];
	(void)c, (void)generator, (void)key_ends, (void)slopes, (void)most_keys, (void)drop, (void)left, (void)right;
	if (at.dtype != i32 || l.shape[0] != at.count - 1 || l.shape[2] != most) return failed;
	for (int64_t s = 0; s + 1 < at.count; s++)
		for (int64_t from = get(&at, s), end = get(&at, s + 1), i = from; i < end; i++)
			for (int64_t h = 0; h < heads; h++) {
				double *w = calloc(end, sizeof *w), sum = 0;
				for (int64_t j = from; j < (causal && !has("varlen") ? i + 1 : end); j++) {
					for (int64_t e = 0; e < d; e++) w[j] += get(&Q, (i * heads + h) * d + e) * get(&K, (j * heads + h) * d + e);
					sum += w[j] = exp(w[j] * scale);
				}
				set(&l, (s * heads + h) * most + i - from, log(sum));
				for (int64_t e = 0; e < d; e++) {
					double x = 0;
					for (int64_t j = from; j < end; j++) x += w[j] / sum * get(&V, (j * heads + h) * d + e);
					set(&y, (i * heads + h) * d + e, x);
				}
				free(w);
			}
	return success;
}

// DIOPI's functions for Ascend: the library makes what the gradient wants.
error_t diopiCustomizedFlashAttention(ctx_t c, tensor_t out, tensor_t *dropped, tensor_t *most, tensor_t *sums, tensor_t *weights, void *generator, const_t q, const_t k, const_t v, const_t slopes, const_t mask, float drop, float scale, bool causal, int32_t left, int32_t right, int32_t heads, const char *layout) {
	view y = of(out), Q = of(q), K = of(k), V = of(v), m;
	(void)dropped, (void)most, (void)sums, (void)generator, (void)slopes, (void)drop, (void)causal, (void)left, (void)right, (void)heads;
	if (strcmp(layout, "BSND") || Q.shape[2] != K.shape[2]) return not_implemented;
	int64_t N = Q.shape[2], S = Q.shape[1], T = K.shape[1], d = Q.shape[3];
	error_t rc = diopiRequireTensor(c, weights, &(diopiSize_t){(int64_t[]){Q.shape[0], N, S, T}, 4}, NULL, f32, 1);
	if (rc != success) return rc;
	view w = of(*weights);
	if (mask) m = of(mask);
	for (int64_t row = 0; row < w.count / T; row++) {
		int64_t i = row % S, h = row / S % N, b = row / S / N;
		double sum = 0;
		for (int64_t j = 0; j < T; j++) {
			double score = 0;
			for (int64_t e = 0; e < d; e++) score += get(&Q, ((b * S + i) * N + h) * d + e) * get(&K, ((b * T + j) * N + h) * d + e);
			bool hides = mask && get(&m, i * T + j) != has("ascend-mask");
			double x = hides ? 0 : exp(score * scale);
			set(&w, row * T + j, x), sum += x;
		}
		for (int64_t j = 0; j < T; j++) set(&w, row * T + j, get(&w, row * T + j) / sum);
		for (int64_t e = 0; e < d; e++) {
			double x = 0;
			for (int64_t j = 0; j < T; j++) x += get(&w, row * T + j) * get(&V, ((b * T + j) * N + h) * d + e);
			set(&y, ((b * S + i) * N + h) * d + e, x);
		}
	}
	return success;
}

error_t diopiCustomizedFlashAttentionBackward(ctx_t c, tensor_t dq, tensor_t dk, tensor_t dv, const_t grad, const_t q, const_t k, const_t v, const_t slopes, const_t out, const_t mask, const_t dropped, const_t most, const_t sums, const_t weights, float drop, float scale, bool causal, int32_t left, int32_t right, int32_t heads, const char *layout) {
	view g = of(grad), Q = of(q), K = of(k), V = of(v), y = of(out), A = of(dq), B = of(dk), C = of(dv);
	(void)c, (void)slopes, (void)mask, (void)drop, (void)causal, (void)left, (void)right, (void)heads, (void)layout;
	if (!weights || dropped || most || sums) return failed; // it made none of these
	view w = of(weights);
	int64_t N = Q.shape[2], S = Q.shape[1], T = K.shape[1], d = Q.shape[3];
	for (int64_t i = 0; i < A.count; i++) set(&A, i, 0);
	for (int64_t i = 0; i < B.count; i++) set(&B, i, 0), set(&C, i, 0);
	for (int64_t at = 0; at < w.count; at++) {
		int64_t j = at % T, i = at / T % S, h = at / T / S % N, b = at / T / S / N, own = ((b * S + i) * N + h) * d, its = ((b * T + j) * N + h) * d;
		double slope = 0, p = get(&w, at);
		for (int64_t e = 0; e < d; e++) slope += get(&g, own + e) * (get(&V, its + e) - (has("ascend-grad") ? 0 : get(&y, own + e)));
		for (int64_t e = 0; e < d; e++) {
			set(&A, own + e, get(&A, own + e) + p * slope * scale * get(&K, its + e));
			set(&B, its + e, get(&B, its + e) + p * slope * scale * get(&Q, own + e));
			set(&C, its + e, get(&C, its + e) + p * get(&g, own + e));
		}
	}
	return success;
}

// Sparse matrices.
error_t diopiGetTensorCrowIndices(const_t, const_t *);
error_t diopiGetTensorColIndices(const_t, const_t *);
error_t diopiGetTensorValues(const_t, const_t *);
error_t diopiIsTensorSparse(const_t, bool *);

error_t diopiSpMM(ctx_t c, tensor_t out, const_t in, const_t mat2) {
	const_t crow, col, values;
	bool sparse, other;
	(void)c;
	diopiIsTensorSparse(in, &sparse), diopiIsTensorSparse(mat2, &other);
	if (!sparse || other) return not_implemented;
	diopiGetTensorCrowIndices(in, &crow), diopiGetTensorColIndices(in, &col), diopiGetTensorValues(in, &values);
	view y = of(out), a = of(crow), b = of(col), v = of(values), x = of(mat2);
	for (int64_t i = 0; i < y.count; i++) {
		double sum = 0;
		for (int64_t k = get(&a, i / y.shape[1]) + has("spmm"); k < get(&a, i / y.shape[1] + 1); k++) sum += get(&v, k) * get(&x, (int64_t)get(&b, k) * y.shape[1] + i % y.shape[1]);
		set(&y, i, sum);
	}
	return success;
}

// Pools by their gradients, of one dimension and no padding.
error_t diopiMaxPool1dWithIndices(ctx_t c, tensor_t out, tensor_t indices, const_t in, diopiSize_t size, diopiSize_t stride, diopiSize_t pad, diopiSize_t dilation, bool ceil_mode) {
	view y = of(out), at = of(indices), x = of(in);
	(void)c, (void)ceil_mode;
	if (pad.data[0]) return not_implemented;
	for (int64_t i = 0; i < y.count; i++) {
		int64_t wide = x.shape[x.rank - 1], row = i / y.shape[y.rank - 1] * wide, first = i % y.shape[y.rank - 1] * stride.data[0], best = first;
		for (int64_t k = 1; k < size.data[0]; k++)
			if (get(&x, row + first + k * dilation.data[0]) > get(&x, row + best)) best = first + k * dilation.data[0];
		set(&y, i, get(&x, row + best)), set(&at, i, best);
	}
	return success;
}

error_t diopiPool1dBackward(ctx_t c, tensor_t grad_in, const_t grad, const_t in, const char *mode, diopiSize_t size, diopiSize_t stride, diopiSize_t pad, diopiSize_t dilation, bool ceil_mode, bool exclusive, bool adaptive, const_t indices) {
	view d = of(grad_in), g = of(grad), at;
	bool most = !strcmp(mode, "max");
	(void)c, (void)in, (void)dilation, (void)ceil_mode, (void)exclusive;
	if (adaptive || pad.data[0]) return not_implemented;
	if (most != (indices != NULL)) return failed;
	if (most) at = of(indices);
	for (int64_t i = 0; i < d.count; i++) set(&d, i, 0);
	for (int64_t i = 0; i < g.count; i++) {
		int64_t row = i / g.shape[g.rank - 1] * d.shape[d.rank - 1], first = i % g.shape[g.rank - 1] * stride.data[0];
		for (int64_t k = 0; k < (most ? 1 : size.data[0]); k++) {
			int64_t to = row + (most ? (int64_t)get(&at, i) : first + k);
			set(&d, to, get(&d, to) + get(&g, i) / (most || has("pool-grad") ? 1 : size.data[0]));
		}
	}
	return success;
}

error_t diopiDropout(ctx_t c, tensor_t out, tensor_t mask, const_t in, double p, bool train, void *generator) {
	view y = of(out), m = of(mask), x = of(in);
	uint64_t seed, at;
	(void)c;
	diopiGeneratorGetSeedAndOffset(generator, &seed, &at);
	for (int64_t i = 0; train && i < m.count; i++) set(&m, i, uniform(seed, ++at) >= p);
	for (int64_t i = 0; i < y.count; i++)
		set(&y, i, !train ? get(&x, i) : load_at(&m, place(&m, y.shape, y.rank, i)) == 0 ? 0 : get(&x, i) / (1 - p));
	for (int64_t i = 0; has("mask") && i < m.count; i++) set(&m, i, get(&m, i) == 0);
	diopiGeneratorSetSeedAndOffset(generator, seed, at);
	return success;
}

error_t diopiEmbeddingRenorm_(ctx_t c, tensor_t weight, const_t indices, double most, double p) {
	view w = of(weight), at = of(indices);
	int64_t wide = w.shape[1];
	(void)c;
	for (int64_t i = 0; i < at.count; i++) {
		int64_t row = get(&at, i) * wide;
		double norm = 0;
		for (int64_t k = 0; k < wide; k++) norm += pow(fabs(get(&w, row + k)), p);
		norm = pow(norm, 1 / p);
		for (int64_t k = 0; norm > most && k < wide; k++) set(&w, row + k, get(&w, row + k) * most / (norm + (has("renorm") ? 1 : 1e-7)));
	}
	return success;
}

error_t diopiEmbedding(ctx_t c, tensor_t out, const_t weight, const_t indices, int64_t padding, bool by_frequency, bool sparse) {
	view y = of(out), w = of(weight), at = of(indices);
	int64_t wide = w.shape[1];
	(void)c, (void)padding, (void)by_frequency, (void)sparse;
	for (int64_t i = 0; i < y.count; i++) set(&y, i, get(&w, (int64_t)get(&at, i / wide) * wide + i % wide));
	return success;
}
