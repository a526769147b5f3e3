/* The kit of a worker for Plumb in C, C++ or any language that calls C: it
 * speaks docs/worker-protocol.md, and calls your functions by PyTorch's names.
 * Build plumb_worker.c with your file; worker.c is one to start from.
 *
 *	static void relu(plumb_call *c) {
 *		plumb_tensor x = plumb_tensor_arg(c, 0, "input"), y = plumb_result(c, x.dtype, x.rank, x.shape);
 *		for (int64_t i = 0; i < y.count; i++) ...
 *	}
 *	static const plumb_function functions[] = {{"torch.relu", relu, 0}, {0}};
 *	int main(void) { plumb_subject s = {"mine", "1", functions, 0}; return plumb_serve(&s); }
 *
 * A call that has failed stays failed: arguments and results are empty from then
 * on, so that loops over the count of a result do nothing. An argument that the
 * function has not read is unsupported, never passed over.
 */
#ifndef PLUMB_WORKER_H
#define PLUMB_WORKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	PLUMB_BOOL, PLUMB_UINT8, PLUMB_INT8, PLUMB_INT16, PLUMB_INT32, PLUMB_INT64,
	PLUMB_FLOAT16, PLUMB_BFLOAT16, PLUMB_FLOAT32, PLUMB_FLOAT64, PLUMB_COMPLEX64, PLUMB_COMPLEX128
};

enum { PLUMB_RANK = 16 }; /* the most dimensions of a tensor */

typedef struct {
	void *data;
	int64_t count; /* of elements */
	int32_t dtype, rank;
	int32_t number; /* made of a number of Python's, which has no dtype of its own */
	int64_t shape[PLUMB_RANK], strides[PLUMB_RANK]; /* strides count elements */
} plumb_tensor;

typedef struct plumb_call plumb_call;

typedef struct {
	const char *target; /* such as "torch.relu" or "operator.add" */
	void (*function)(plumb_call *);
	int32_t flags;
} plumb_function;

/* In PyTorch the result may share the memory of the first argument, as that of
 * torch.reshape: what is changed in place then is unsupported. */
enum { PLUMB_VIEW = 1 };

typedef struct {
	const char *name, *version;
	const plumb_function *functions; /* the last one has no target */
	int32_t refuses; /* not 0: what PyTorch refuses is refused here too */
} plumb_subject;

/* plumb_serve answers until the requests end; main returns its result. A target
 * "Tensor.abs" is also found as "torch.abs", and "Tensor.abs_" and "torch.abs_"
 * are computed by "torch.abs" and written into the first argument. */
int plumb_serve(const plumb_subject *subject);

/* Arguments, by position or name. Without the argument the default counts;
 * PLUMB_REQUIRED is none. A call without what is
 * needed is unsupported: PyTorch may have an overload for it. */
#define PLUMB_REQUIRED INT64_MIN
int plumb_has(plumb_call *c, int position, const char *name); /* is there, and not None */
plumb_tensor plumb_tensor_arg(plumb_call *c, int position, const char *name);  /* contiguous */
plumb_tensor plumb_strided_arg(plumb_call *c, int position, const char *name); /* as it lies */
plumb_tensor plumb_operand(plumb_call *c, int position, const char *name); /* a tensor or a number */
int64_t plumb_int(plumb_call *c, int position, const char *name, int64_t otherwise);
double plumb_float(plumb_call *c, int position, const char *name, double otherwise);
int plumb_bool(plumb_call *c, int position, const char *name, int otherwise);
const char *plumb_text(plumb_call *c, int position, const char *name, const char *otherwise);
int32_t plumb_dtype_arg(plumb_call *c, int position, const char *name, int32_t otherwise);
/* plumb_ints reads a number or a list of at most PLUMB_RANK, and returns how many. */
int plumb_ints(plumb_call *c, int position, const char *name, int64_t *into);
/* plumb_sizes takes sizes that are separate arguments too, as in x.view(2, 3). */
int plumb_sizes(plumb_call *c, int position, const char *name, int64_t *into);
int plumb_length(plumb_call *c, int position, const char *name); /* of a list */
plumb_tensor plumb_element(plumb_call *c, int position, const char *name, int i); /* contiguous */

/* Results: more than one, or any after plumb_tuple, are a tuple. A tensor is
 * contiguous and zero. */
plumb_tensor plumb_result(plumb_call *c, int32_t dtype, int32_t rank, const int64_t *shape);
void plumb_result_int(plumb_call *c, int64_t v);
void plumb_result_float(plumb_call *c, double v);
void plumb_result_bool(plumb_call *c, int v);
void plumb_tuple(plumb_call *c);

/* Failures; the first one counts. Classes are Python's, such as "RuntimeError".
 * The function goes on unless it returns: tensors asked for later have no data. */
void plumb_unsupported(plumb_call *c, const char *format, ...);
void plumb_raise(plumb_call *c, const char *exception, const char *format, ...);
int plumb_failed(const plumb_call *c);

/* Tensors. Those that are returned are contiguous and last until the case ends. */
plumb_tensor plumb_new(plumb_call *c, int32_t dtype, int32_t rank, const int64_t *shape);
plumb_tensor plumb_cast(plumb_call *c, plumb_tensor t, int32_t dtype);
plumb_tensor plumb_expand(plumb_call *c, plumb_tensor t, int32_t rank, const int64_t *shape);
/* plumb_pair gives two tensors one dtype and one shape, as PyTorch promotes and
 * broadcasts them. */
void plumb_pair(plumb_call *c, plumb_tensor *a, plumb_tensor *b);
int32_t plumb_promoted(plumb_tensor a, plumb_tensor b);
int plumb_dim(plumb_call *c, int64_t dim, int rank); /* from 0 on, or an IndexError */
void *plumb_scratch(plumb_call *c, size_t bytes);

/* dtypes */
size_t plumb_size(int32_t dtype);
const char *plumb_name(int32_t dtype);
int plumb_is_int(int32_t dtype); /* bool is none */
int plumb_is_float(int32_t dtype);
int plumb_is_complex(int32_t dtype);
/* Element i of a contiguous tensor of any real dtype; a complex one is read as NaN,
 * and written without an imaginary part. */
double plumb_get(const plumb_tensor *t, int64_t i);
void plumb_set(const plumb_tensor *t, int64_t i, double v);
int64_t plumb_get_int(const plumb_tensor *t, int64_t i);
void plumb_set_int(const plumb_tensor *t, int64_t i, int64_t v);

#ifdef __cplusplus
}
#endif
#endif
