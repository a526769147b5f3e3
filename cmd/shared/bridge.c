//go:build cgo

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "plumb.h"

/* A process that was forked has none of the threads of Go's runtime: a call into it
 * would wait for them for ever. */
static volatile int forked;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void watch_fork(void) { pthread_atfork(NULL, NULL, in_child); }

static char *refuse(void) {
	return strdup("{\"error\":{\"class\":\"RuntimeError\",\"op\":\"\",\"argument\":\"\",\"message\":"
	              "\"this process was forked after Plumb's library was loaded, and Go's runtime does not live on in the child: "
	              "load it in the child, or start processes by spawn or forkserver\"}}");
}

char *plumb_call(const char *name, const char *arguments, const DLTensor *const *tensors, int n,
                 DLManagedTensor **results, int room, int *count) {
	return forked ? refuse() : goCall((char *)name, (char *)arguments, (void *)tensors, n, results, room, count);
}

char *plumb_prepare(const char *call, size_t length) { return forked ? refuse() : goPrepare((char *)call, length); }

char *plumb_run(int64_t plan, void *const *tensors, int n, void *const *results, int m) {
	return forked ? refuse() : goRun(plan, (void *)tensors, n, (void *)results, m);
}

char *plumb_run_new(int64_t plan, void *const *tensors, int n, DLManagedTensor **results, int *shares, int room,
                    int *count) {
	return forked ? refuse() : goRunNew(plan, (void *)tensors, n, results, shares, room, count);
}

void plumb_forget(int64_t plan) {
	if (!forked) goForget(plan);
}

void plumb_seed(uint64_t seed) {
	if (!forked) goSeed(seed);
}

char *plumb_operators(void) { return forked ? refuse() : goOperators(); }
char *plumb_describe(const char *name) { return forked ? refuse() : goDescribe((char *)name); }
void plumb_free(char *text) { free(text); }

void plumb_delete(DLManagedTensor *t) {
	if (t && t->deleter) t->deleter(t);
}

/* For Go: a result whose memory is pinned until it is deleted. */
static void release(DLManagedTensor *t) {
	if (!forked) goRelease((uintptr_t)t->manager_ctx);
	free(t->dl_tensor.shape);
	free(t);
}

DLManagedTensor *plumb_managed(void *data, int ndim, uint8_t code, uint8_t bits, uintptr_t handle) {
	DLManagedTensor *t = calloc(1, sizeof *t);
	t->dl_tensor.data = data;
	t->dl_tensor.device.device_type = 1; /* kDLCPU */
	t->dl_tensor.ndim = ndim;
	t->dl_tensor.dtype.code = code;
	t->dl_tensor.dtype.bits = bits;
	t->dl_tensor.dtype.lanes = 1;
	t->dl_tensor.shape = calloc(2 * (size_t)ndim + 1, sizeof(int64_t));
	t->dl_tensor.strides = t->dl_tensor.shape + ndim;
	t->manager_ctx = (void *)handle;
	t->deleter = release;
	return t;
}

/* Calls of arrays of numpy by the objects themselves: an array begins as numpy's
 * PyArrayObject_fields does. The Python package asks whether that holds, by
 * plumb_numpy_layout, before it relies on it. */
typedef struct {
	void *head[2];
	void *data;
	int ndim;
	intptr_t *shape, *strides;
	void *base, *dtype;
} array;

enum { most_dims = 8, most_arrays = 2 };

typedef struct {
	int64_t plan;
	struct {
		void *dtype;
		int ndim;
		intptr_t shape[most_dims], strides[most_dims];
	} of[most_arrays];
} remembered;

static char other; /* what is returned where the arrays are not as those that are remembered */

void *plumb_numpy_other(void) { return &other; }

void plumb_numpy_layout(array *x, int64_t *out) {
	*out++ = (int64_t)x->data;
	*out++ = (int64_t)x->dtype;
	*out++ = x->ndim;
	for (int i = 0; i < x->ndim; i++) *out++ = x->shape[i];
	for (int i = 0; i < x->ndim; i++) *out++ = x->strides[i];
}

static int remember(remembered *r, int i, array *x) {
	if (x->ndim > most_dims) return 0;
	r->of[i].dtype = x->dtype;
	r->of[i].ndim = x->ndim;
	memcpy(r->of[i].shape, x->shape, x->ndim * sizeof(intptr_t));
	memcpy(r->of[i].strides, x->strides, x->ndim * sizeof(intptr_t));
	return 1;
}

static int is(const remembered *r, int i, const array *x) {
	if (x->dtype != r->of[i].dtype || x->ndim != r->of[i].ndim) return 0;
	for (int d = 0; d < x->ndim; d++)
		if (x->shape[d] != r->of[i].shape[d] || x->strides[d] != r->of[i].strides[d]) return 0;
	return 1;
}

void *plumb_numpy_remember(int64_t plan, array *x, array *y) {
	remembered *r = calloc(1, sizeof *r);
	r->plan = plan;
	if (remember(r, 0, x) && remember(r, 1, y)) return r;
	free(r);
	return NULL;
}

void plumb_numpy_forget(remembered *r) { free(r); }

char *plumb_numpy_1(const remembered *r, array *x, array *out) {
	if (!is(r, 0, x)) return &other;
	void *data[] = {x->data, out->data};
	return plumb_run(r->plan, data, 1, data + 1, 1);
}

char *plumb_numpy_2(const remembered *r, array *x, array *y, array *out) {
	if (!is(r, 0, x) || !is(r, 1, y)) return &other;
	void *data[] = {x->data, y->data, out->data};
	return plumb_run(r->plan, data, 2, data + 2, 1);
}
