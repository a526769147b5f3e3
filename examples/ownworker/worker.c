/* A worker for Plumb in C: some seventy of PyTorch's functions, forward only.
 * This is the part that is yours; plumb_worker.c speaks the protocol.
 *
 * Results of floats are computed in double and rounded once. */
#include "plumb_worker.h"

#include <math.h>
#include <string.h>

/* Functions of one element. */
static int32_t floating(plumb_tensor x) { return plumb_is_float(x.dtype) ? x.dtype : PLUMB_FLOAT32; }

static plumb_tensor real(plumb_call *c, int position, const char *name) {
	plumb_tensor x = plumb_tensor_arg(c, position, name);
	if (plumb_is_complex(x.dtype)) plumb_unsupported(c, "%s", plumb_name(x.dtype));
	return x;
}

static void map(plumb_call *c, double (*f)(double)) {
	plumb_tensor x = real(c, 0, "input"), y = plumb_result(c, floating(x), x.rank, x.shape);
	for (int64_t i = 0; i < y.count; i++) plumb_set(&y, i, f(plumb_get(&x, i)));
}

#define MAP(NAME, F) static void NAME(plumb_call *c) { map(c, F); }

static double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }
static double rsqrt_of(double x) { return 1 / sqrt(x); }
static double reciprocal_of(double x) { return 1 / x; }
static double silu_of(double x) { return x * sigmoid_of(x); }
static double mish_of(double x) { return x * tanh(x > 30 ? x : log1p(exp(x))); }
static double logsigmoid_of(double x) { return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x)); }
static double selu_of(double x) { return 1.0507009873554804934193349852946 * (x > 0 ? x : 1.6732632423543772848170429916717 * expm1(x)); }

MAP(do_exp, exp) MAP(do_exp2, exp2) MAP(do_expm1, expm1) MAP(do_log, log) MAP(do_log2, log2) MAP(do_log10, log10) MAP(do_log1p, log1p)
MAP(do_sqrt, sqrt) MAP(do_rsqrt, rsqrt_of) MAP(do_reciprocal, reciprocal_of)
MAP(do_sin, sin) MAP(do_cos, cos) MAP(do_tan, tan) MAP(do_asin, asin) MAP(do_acos, acos) MAP(do_atan, atan)
MAP(do_sinh, sinh) MAP(do_cosh, cosh) MAP(do_tanh, tanh) MAP(do_asinh, asinh) MAP(do_acosh, acosh) MAP(do_atanh, atanh)
MAP(do_erf, erf) MAP(do_erfc, erfc) MAP(sigmoid, sigmoid_of) MAP(silu, silu_of) MAP(mish, mish_of) MAP(logsigmoid, logsigmoid_of) MAP(selu, selu_of)

/* These keep the dtype: what they do to floats, and to integers. */
static void keep(plumb_call *c, double (*f)(double), int64_t (*g)(int64_t)) {
	plumb_tensor x = real(c, 0, "input"), y = plumb_result(c, x.dtype, x.rank, x.shape);
	if (x.dtype == PLUMB_BOOL) plumb_unsupported(c, "bool");
	for (int64_t i = 0; i < y.count; i++) {
		if (plumb_is_float(x.dtype)) plumb_set(&y, i, f(plumb_get(&x, i)));
		else plumb_set_int(&y, i, g(plumb_get_int(&x, i)));
	}
}

#define KEEP(NAME, F, G) static void NAME(plumb_call *c) { keep(c, F, G); }

static int64_t same(int64_t x) { return x; }
static double negative(double x) { return -x; }
static int64_t negative_int(int64_t x) { return (int64_t)-(uint64_t)x; }
static int64_t abs_int(int64_t x) { return x < 0 ? negative_int(x) : x; }
static double square_of(double x) { return x * x; }
static int64_t square_int(int64_t x) { return (int64_t)((uint64_t)x * (uint64_t)x); }
static double sign_of(double x) { return isnan(x) ? 0 : (x > 0) - (x < 0); }
static int64_t sign_int(int64_t x) { return (x > 0) - (x < 0); }
static double relu_of(double x) { return x < 0 ? 0 : x; }
static int64_t relu_int(int64_t x) { return x < 0 ? 0 : x; }
static double relu6_of(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
static int64_t relu6_int(int64_t x) { return x < 0 ? 0 : x > 6 ? 6 : x; }

KEEP(neg, negative, negative_int) KEEP(do_abs, fabs, abs_int) KEEP(square, square_of, square_int) KEEP(sign, sign_of, sign_int)
KEEP(do_floor, floor, same) KEEP(do_ceil, ceil, same) KEEP(do_trunc, trunc, same) KEEP(do_round, nearbyint, same)
KEEP(relu, relu_of, relu_int) KEEP(relu6, relu6_of, relu6_int)

static void leaky_relu(plumb_call *c) {
	double slope = plumb_float(c, 1, "negative_slope", 0.01);
	plumb_tensor x = real(c, 0, "input"), y = plumb_result(c, floating(x), x.rank, x.shape);
	for (int64_t i = 0; i < y.count; i++) plumb_set(&y, i, plumb_get(&x, i) * (plumb_get(&x, i) > 0 ? 1 : slope));
}

static void hardtanh(plumb_call *c) {
	double low = plumb_float(c, 1, "min_val", -1), high = plumb_float(c, 2, "max_val", 1);
	plumb_tensor x = real(c, 0, "input"), y = plumb_result(c, x.dtype, x.rank, x.shape);
	if (!plumb_is_float(x.dtype)) plumb_unsupported(c, "%s", plumb_name(x.dtype));
	for (int64_t i = 0; i < y.count; i++) plumb_set(&y, i, plumb_get(&x, i) < low ? low : plumb_get(&x, i) > high ? high : plumb_get(&x, i));
}

/* Functions of two elements. */
static void both(plumb_call *c, plumb_tensor *a, plumb_tensor *b) {
	*a = plumb_operand(c, 0, "input");
	*b = plumb_operand(c, 1, "other");
	if (plumb_is_complex(a->dtype) || plumb_is_complex(b->dtype)) plumb_unsupported(c, "complex numbers");
	plumb_pair(c, a, b);
}

static void arithmetic(plumb_call *c, double (*f)(double, double), int64_t (*g)(int64_t, int64_t)) {
	plumb_tensor a, b;
	both(c, &a, &b);
	if (a.dtype == PLUMB_BOOL) plumb_unsupported(c, "bool");
	plumb_tensor y = plumb_result(c, a.dtype, a.rank, a.shape);
	for (int64_t i = 0; i < y.count; i++) {
		if (plumb_is_float(a.dtype)) plumb_set(&y, i, f(plumb_get(&a, i), plumb_get(&b, i)));
		else plumb_set_int(&y, i, g(plumb_get_int(&a, i), plumb_get_int(&b, i)));
	}
}

#define ARITHMETIC(NAME, F, G) \
	static double NAME##_of(double a, double b) { return F; } \
	static int64_t NAME##_int(int64_t a, int64_t b) { return G; } \
	static void NAME(plumb_call *c) { arithmetic(c, NAME##_of, NAME##_int); }

ARITHMETIC(add, a + b, (int64_t)((uint64_t)a + (uint64_t)b))
ARITHMETIC(sub, a - b, (int64_t)((uint64_t)a - (uint64_t)b))
ARITHMETIC(mul, a * b, (int64_t)((uint64_t)a * (uint64_t)b))
ARITHMETIC(maximum, isnan(a) || a > b ? a : b, a > b ? a : b)
ARITHMETIC(minimum, isnan(a) || a < b ? a : b, a < b ? a : b)

static void quotient(plumb_call *c) {
	plumb_tensor a, b;
	both(c, &a, &b);
	plumb_tensor y = plumb_result(c, floating(a), a.rank, a.shape);
	for (int64_t i = 0; i < y.count; i++) plumb_set(&y, i, plumb_get(&a, i) / plumb_get(&b, i));
}

static void do_atan2(plumb_call *c) {
	plumb_tensor a, b;
	both(c, &a, &b);
	plumb_tensor y = plumb_result(c, floating(a), a.rank, a.shape);
	for (int64_t i = 0; i < y.count; i++) plumb_set(&y, i, atan2(plumb_get(&a, i), plumb_get(&b, i)));
}

#define COMPARISON(NAME, OP) \
	static void NAME(plumb_call *c) { \
		plumb_tensor a, b; \
		both(c, &a, &b); \
		plumb_tensor y = plumb_result(c, PLUMB_BOOL, a.rank, a.shape); \
		for (int64_t i = 0; i < y.count; i++) \
			plumb_set_int(&y, i, plumb_is_float(a.dtype) ? plumb_get(&a, i) OP plumb_get(&b, i) : plumb_get_int(&a, i) OP plumb_get_int(&b, i)); \
	}

COMPARISON(eq, ==) COMPARISON(ne, !=) COMPARISON(lt, <) COMPARISON(le, <=) COMPARISON(gt, >) COMPARISON(ge, >=)
COMPARISON(logical_and, &&) COMPARISON(logical_or, ||)

static void logical_not(plumb_call *c) {
	plumb_tensor x = real(c, 0, "input"), y = plumb_result(c, PLUMB_BOOL, x.rank, x.shape);
	for (int64_t i = 0; i < y.count; i++) plumb_set_int(&y, i, plumb_get(&x, i) == 0);
}

/* Reductions, over all elements or one dimension: a tensor is seen as
 * [outer, n, inner], and n disappears or becomes 1. */
typedef struct { int64_t outer, n, inner; int32_t rank; int64_t shape[PLUMB_RANK]; } axis;

static axis along(plumb_call *c, const plumb_tensor *x, int at) {
	axis a;
	memset(&a, 0, sizeof a);
	a.outer = a.n = a.inner = 1;
	if (!plumb_has(c, at, "dim")) {
		a.n = x->count;
		return a;
	}
	int64_t dims[PLUMB_RANK];
	if (plumb_ints(c, at, "dim", dims) != 1) plumb_unsupported(c, "a reduction of several dimensions");
	int keep = plumb_bool(c, at + 1, "keepdim", 0), dim = plumb_failed(c) ? 0 : plumb_dim(c, dims[0], x->rank);
	for (int d = 0; d < x->rank; d++) {
		*(d < dim ? &a.outer : d > dim ? &a.inner : &a.n) *= x->shape[d];
		if (d != dim || keep) a.shape[a.rank++] = d == dim ? 1 : x->shape[d];
	}
	return a;
}

static void total(plumb_call *c, int mean) {
	plumb_tensor x = real(c, 0, "input");
	axis a = along(c, &x, 1);
	if (mean && !plumb_is_float(x.dtype)) plumb_raise(c, "RuntimeError", "mean of %s", plumb_name(x.dtype));
	plumb_tensor y = plumb_result(c, plumb_is_float(x.dtype) ? x.dtype : PLUMB_INT64, a.rank, a.shape);
	for (int64_t i = 0; i < y.count; i++) {
		double sum = 0;
		uint64_t whole = 0;
		for (int64_t k = 0; k < a.n; k++) {
			int64_t at = (i / a.inner * a.n + k) * a.inner + i % a.inner;
			if (plumb_is_float(x.dtype)) sum += plumb_get(&x, at);
			else whole += (uint64_t)plumb_get_int(&x, at);
		}
		if (plumb_is_float(x.dtype)) plumb_set(&y, i, mean ? sum / (double)a.n : sum);
		else plumb_set_int(&y, i, (int64_t)whole);
	}
}

static void sum(plumb_call *c) { total(c, 0); }
static void mean(plumb_call *c) { total(c, 1); }

/* extreme is max and min: of two tensors, of all elements, or of a dimension
 * with its indices. */
static void extreme(plumb_call *c, int sign) {
	if (plumb_has(c, 9, "other")) {
		(sign > 0 ? maximum : minimum)(c);
		return;
	}
	int pairs = plumb_has(c, 1, "dim");
	plumb_tensor x = real(c, 0, "input");
	axis a = along(c, &x, 1);
	if (a.n == 0) plumb_unsupported(c, "an extreme of nothing");
	plumb_tensor y = plumb_result(c, x.dtype, a.rank, a.shape), where = y;
	if (pairs) where = plumb_result(c, PLUMB_INT64, a.rank, a.shape);
	for (int64_t i = 0; i < y.count; i++) {
		int64_t best = 0, from = i / a.inner * a.n * a.inner + i % a.inner;
		for (int64_t k = 1; k < a.n; k++) {
			double new_one = sign * plumb_get(&x, from + k * a.inner), old = sign * plumb_get(&x, from + best * a.inner);
			if (new_one > old || (isnan(new_one) && !isnan(old))) best = k;
		}
		memcpy((char *)y.data + (size_t)i * plumb_size(x.dtype), (char *)x.data + (size_t)(from + best * a.inner) * plumb_size(x.dtype), plumb_size(x.dtype));
		if (pairs) plumb_set_int(&where, i, best);
	}
}

static void do_max(plumb_call *c) { extreme(c, 1); }
static void do_min(plumb_call *c) { extreme(c, -1); }

static void soft(plumb_call *c, int logarithm) {
	plumb_tensor x = real(c, 0, "input"), y = plumb_result(c, floating(x), x.rank, x.shape);
	int dim = plumb_dim(c, plumb_int(c, 1, "dim", PLUMB_REQUIRED), x.rank);
	int64_t n = x.rank ? x.shape[dim] : 1, inner = x.rank ? x.strides[dim] : 1;
	for (int64_t i = 0; i < y.count; i += i % inner == inner - 1 ? (n - 1) * inner + 1 : 1) {
		double top = -INFINITY, all = 0;
		for (int64_t k = 0; k < n; k++) top = fmax(top, plumb_get(&x, i + k * inner));
		for (int64_t k = 0; k < n; k++) all += exp(plumb_get(&x, i + k * inner) - top);
		for (int64_t k = 0; k < n; k++) {
			double v = plumb_get(&x, i + k * inner) - top;
			plumb_set(&y, i + k * inner, logarithm ? v - log(all) : exp(v) / all);
		}
	}
}

static void softmax(plumb_call *c) { soft(c, 0); }
static void log_softmax(plumb_call *c) { soft(c, 1); }

/* Losses with their mean, sum or no reduction. */
static void loss(plumb_call *c, int power) {
	const char *reduction = plumb_text(c, 9, "reduction", "mean");
	plumb_tensor a = real(c, 0, "input"), b = real(c, 1, "target");
	plumb_pair(c, &a, &b);
	if (!plumb_is_float(a.dtype)) plumb_unsupported(c, "a loss of %s", plumb_name(a.dtype));
	int whole = strcmp(reduction, "none") != 0;
	plumb_tensor y = plumb_result(c, a.dtype, whole ? 0 : a.rank, a.shape);
	double all = 0;
	for (int64_t i = 0; i < a.count; i++) {
		double d = fabs(plumb_get(&a, i) - plumb_get(&b, i)), v = power == 2 ? d * d : d;
		all += v;
		if (!whole && y.count) plumb_set(&y, i, v);
	}
	if (whole && y.count) plumb_set(&y, 0, strcmp(reduction, "sum") ? all / (double)a.count : all);
}

static void mse_loss(plumb_call *c) { loss(c, 2); }
static void l1_loss(plumb_call *c) { loss(c, 1); }

/* Matrices: [batch, n, k] times [batch, k, m], with strides of 0 for what is
 * there once. */
static void product(plumb_call *c, plumb_tensor a, plumb_tensor b, int rank) {
	int n = a.rank - 2, m = b.rank - 1;
	if (plumb_failed(c)) return;
	if (a.rank != rank || b.rank != rank || a.shape[n + 1] != b.shape[m - 1] || (rank == 3 && a.shape[0] != b.shape[0]))
		plumb_raise(c, "RuntimeError", "matrices of these shapes cannot be multiplied");
	if (a.dtype != b.dtype) plumb_raise(c, "RuntimeError", "expected both matrices to have the same dtype");
	if (plumb_is_complex(a.dtype) || a.dtype == PLUMB_BOOL) plumb_unsupported(c, "matrices of %s", plumb_name(a.dtype));
	int64_t shape[3] = {a.shape[0], a.shape[n], b.shape[m]};
	shape[rank - 2] = a.shape[n];
	shape[rank - 1] = b.shape[m];
	plumb_tensor y = plumb_result(c, a.dtype, rank, shape);
	int64_t rows = shape[rank - 2], columns = shape[rank - 1], inner = plumb_failed(c) ? 0 : a.shape[n + 1];
	for (int64_t i = 0; i < y.count; i++) {
		int64_t batch = i / (rows * columns), row = i / columns % rows, column = i % columns;
		double sum = 0;
		uint64_t whole = 0;
		for (int64_t k = 0; k < inner; k++) {
			int64_t p = (batch * rows + row) * inner + k, q = (batch * inner + k) * columns + column;
			if (plumb_is_float(a.dtype)) sum += plumb_get(&a, p) * plumb_get(&b, q);
			else whole += (uint64_t)plumb_get_int(&a, p) * (uint64_t)plumb_get_int(&b, q);
		}
		if (plumb_is_float(a.dtype)) plumb_set(&y, i, sum);
		else plumb_set_int(&y, i, (int64_t)whole);
	}
}

static void mm(plumb_call *c) { product(c, plumb_tensor_arg(c, 0, "input"), plumb_tensor_arg(c, 1, "mat2"), 2); }
static void bmm(plumb_call *c) { product(c, plumb_tensor_arg(c, 0, "input"), plumb_tensor_arg(c, 1, "mat2"), 3); }

static void matmul(plumb_call *c) {
	plumb_tensor a = plumb_tensor_arg(c, 0, "input"), b = plumb_tensor_arg(c, 1, "other");
	if (a.rank < 2 || b.rank < 2 || a.rank > 3 || b.rank != a.rank) plumb_unsupported(c, "a product of %d and %d dimensions", a.rank, b.rank);
	if (a.rank == 3 && a.shape[0] != b.shape[0]) plumb_unsupported(c, "batches that are broadcast");
	product(c, a, b, a.rank);
}

/* What only moves elements, of any dtype. */
static void copy(plumb_call *c) {
	plumb_tensor x = plumb_tensor_arg(c, 0, "input"), y = plumb_result(c, x.dtype, x.rank, x.shape);
	if (y.count) memcpy(y.data, x.data, (size_t)y.count * plumb_size(y.dtype));
}

static void reshaped(plumb_call *c, const char *name) {
	int64_t shape[PLUMB_RANK], known = 1;
	plumb_tensor x = plumb_tensor_arg(c, 0, "input");
	int rank = plumb_sizes(c, 1, name, shape), free_one = -1;
	for (int d = 0; d < rank; d++) {
		if (shape[d] == -1 && free_one < 0) free_one = d;
		else if (shape[d] < 0 || (shape[d] > 0 && known > INT64_MAX / shape[d])) plumb_raise(c, "RuntimeError", "invalid shape");
		else known *= shape[d];
	}
	if (free_one >= 0 && known > 0) known *= shape[free_one] = x.count / known;
	if (known != x.count) plumb_raise(c, "RuntimeError", "the shape is invalid for input of size %lld", (long long)x.count);
	plumb_tensor y = plumb_result(c, x.dtype, rank, shape);
	if (y.count) memcpy(y.data, x.data, (size_t)y.count * plumb_size(y.dtype));
}

static void reshape(plumb_call *c) { reshaped(c, "shape"); }
static void view(plumb_call *c) { reshaped(c, "size"); }

static void transpose(plumb_call *c) {
	plumb_tensor x = plumb_strided_arg(c, 0, "input");
	int d = plumb_dim(c, plumb_int(c, 1, "dim0", PLUMB_REQUIRED), x.rank), e = plumb_dim(c, plumb_int(c, 2, "dim1", PLUMB_REQUIRED), x.rank);
	int64_t size = x.shape[d], stride = x.strides[d];
	x.shape[d] = x.shape[e];
	x.strides[d] = x.strides[e];
	x.shape[e] = size;
	x.strides[e] = stride;
	x = plumb_expand(c, x, x.rank, x.shape); /* contiguous */
	plumb_tensor y = plumb_result(c, x.dtype, x.rank, x.shape);
	if (y.count) memcpy(y.data, x.data, (size_t)y.count * plumb_size(y.dtype));
}

static void choose(plumb_call *c, plumb_tensor cond, plumb_tensor a) {
	plumb_tensor b = plumb_operand(c, 2, "other");
	if (a.dtype != b.dtype) plumb_unsupported(c, "a choice between %s and %s", plumb_name(a.dtype), plumb_name(b.dtype));
	if (cond.dtype != PLUMB_BOOL) plumb_unsupported(c, "a condition of %s", plumb_name(cond.dtype));
	plumb_pair(c, &a, &b);
	if (cond.rank > a.rank) {
		a = plumb_expand(c, a, cond.rank, cond.shape);
		b = plumb_expand(c, b, cond.rank, cond.shape);
	}
	cond = plumb_expand(c, cond, a.rank, a.shape);
	plumb_tensor y = plumb_result(c, a.dtype, a.rank, a.shape);
	size_t size = plumb_size(y.dtype);
	for (int64_t i = 0; i < y.count; i++) memcpy((char *)y.data + (size_t)i * size, (char *)(((uint8_t *)cond.data)[i] ? a : b).data + (size_t)i * size, size);
}

static void where(plumb_call *c) { choose(c, plumb_tensor_arg(c, 0, "condition"), plumb_operand(c, 1, "input")); }
static void where_self(plumb_call *c) { choose(c, plumb_tensor_arg(c, 1, "condition"), plumb_operand(c, 0, "input")); }

static void cat(plumb_call *c) {
	int many = plumb_length(c, 0, "tensors");
	plumb_tensor first = plumb_element(c, 0, "tensors", 0), out = first;
	int dim = plumb_dim(c, plumb_int(c, 1, "dim", 0), first.rank);
	for (int n = 1; n < many && !plumb_failed(c); n++) {
		plumb_tensor x = plumb_element(c, 0, "tensors", n);
		if (x.dtype != first.dtype) plumb_unsupported(c, "tensors of several dtypes");
		for (int d = 0; d < first.rank; d++)
			if (x.rank != first.rank || (d != dim && x.shape[d] != first.shape[d])) plumb_raise(c, "RuntimeError", "Sizes of tensors must match except in dimension %d", dim);
		out.shape[dim] += x.shape[dim];
	}
	if (first.rank == 0) plumb_raise(c, "RuntimeError", "zero-dimensional tensor (at position 0) cannot be concatenated");
	plumb_tensor y = plumb_result(c, out.dtype, out.rank, out.shape);
	size_t row = plumb_failed(c) ? 0 : (size_t)(y.strides[dim] * y.shape[dim]) * plumb_size(y.dtype), at = 0;
	for (int n = 0; n < many && y.count; n++) {
		plumb_tensor x = plumb_element(c, 0, "tensors", n);
		size_t part = (size_t)(x.strides[dim] * x.shape[dim]) * plumb_size(x.dtype);
		for (size_t i = 0; part && i * part < (size_t)x.count * plumb_size(x.dtype); i++) memcpy((char *)y.data + i * row + at, (char *)x.data + i * part, part);
		at += part;
	}
}

static const plumb_function functions[] = {
	{"torch.exp", do_exp, 0}, {"torch.exp2", do_exp2, 0}, {"torch.expm1", do_expm1, 0}, {"torch.log", do_log, 0}, {"torch.log2", do_log2, 0},
	{"torch.log10", do_log10, 0}, {"torch.log1p", do_log1p, 0}, {"torch.sqrt", do_sqrt, 0}, {"torch.rsqrt", do_rsqrt, 0}, {"torch.reciprocal", do_reciprocal, 0},
	{"torch.sin", do_sin, 0}, {"torch.cos", do_cos, 0}, {"torch.tan", do_tan, 0}, {"torch.asin", do_asin, 0}, {"torch.acos", do_acos, 0}, {"torch.atan", do_atan, 0},
	{"torch.sinh", do_sinh, 0}, {"torch.cosh", do_cosh, 0}, {"torch.tanh", do_tanh, 0}, {"torch.asinh", do_asinh, 0}, {"torch.acosh", do_acosh, 0}, {"torch.atanh", do_atanh, 0},
	{"torch.erf", do_erf, 0}, {"torch.erfc", do_erfc, 0}, {"torch.sigmoid", sigmoid, 0}, {"torch.selu", selu, 0},
	{"torch.nn.functional.silu", silu, 0}, {"torch.nn.functional.mish", mish, 0}, {"torch.nn.functional.logsigmoid", logsigmoid, 0},
	{"torch.neg", neg, 0}, {"torch.abs", do_abs, 0}, {"torch.square", square, 0}, {"torch.sign", sign, 0},
	{"torch.floor", do_floor, 0}, {"torch.ceil", do_ceil, 0}, {"torch.trunc", do_trunc, 0}, {"torch.round", do_round, 0},
	{"torch.relu", relu, 0}, {"torch.nn.functional.relu", relu, 0}, {"torch.nn.functional.relu6", relu6, 0},
	{"torch.nn.functional.leaky_relu", leaky_relu, 0}, {"torch.nn.functional.hardtanh", hardtanh, 0},
	{"torch.add", add, 0}, {"torch.sub", sub, 0}, {"torch.mul", mul, 0}, {"torch.div", quotient, 0}, {"torch.atan2", do_atan2, 0},
	{"operator.add", add, 0}, {"operator.sub", sub, 0}, {"operator.mul", mul, 0}, {"operator.truediv", quotient, 0},
	{"torch.maximum", maximum, 0}, {"torch.minimum", minimum, 0}, {"torch.max", do_max, 0}, {"torch.min", do_min, 0},
	{"torch.eq", eq, 0}, {"torch.ne", ne, 0}, {"torch.lt", lt, 0}, {"torch.le", le, 0}, {"torch.gt", gt, 0}, {"torch.ge", ge, 0},
	{"torch.logical_and", logical_and, 0}, {"torch.logical_or", logical_or, 0}, {"torch.logical_not", logical_not, 0},
	{"torch.sum", sum, 0}, {"torch.mean", mean, 0},
	{"torch.softmax", softmax, 0}, {"torch.nn.functional.softmax", softmax, 0}, {"torch.log_softmax", log_softmax, 0}, {"torch.nn.functional.log_softmax", log_softmax, 0},
	{"torch.nn.functional.mse_loss", mse_loss, 0}, {"torch.nn.functional.l1_loss", l1_loss, 0},
	{"torch.mm", mm, 0}, {"torch.bmm", bmm, 0}, {"torch.matmul", matmul, 0}, {"operator.matmul", matmul, 0},
	{"torch.clone", copy, 0}, {"Tensor.contiguous", copy, PLUMB_VIEW}, {"torch.reshape", reshape, PLUMB_VIEW}, {"Tensor.view", view, PLUMB_VIEW},
	{"torch.transpose", transpose, PLUMB_VIEW}, {"torch.where", where, 0}, {"Tensor.where", where_self, 0}, {"torch.cat", cat, 0}, {"torch.concat", cat, 0},
	{NULL, NULL, 0},
};

int main(void) {
	plumb_subject subject = {"ownworker", "1", functions, 0};
	return plumb_serve(&subject);
}
