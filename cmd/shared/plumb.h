/* Plumb's operators for C: a library that package plumb/cmd/shared makes.
 *
 * Tensors are DLPack's (github.com/dmlc/dlpack), in the memory of a CPU. No function
 * keeps what it is given; none may be called in a process that was forked after the
 * library was loaded, where each returns an error. A char * result is freed by
 * plumb_free; an error is
 *
 *   {"error": {"class": "TypeError", "op": "add", "argument": "alpha", "message": "…"}}
 */
#ifndef PLUMB_H
#define PLUMB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape, *strides; /* in elements; NULL strides are row-major */
	uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
#endif

/* Computes an operator by name: "relu", "max", "torch.nn.functional.pad", an id. The
 * arguments are JSON: {"args": [{"tensor": 0}, 2], "kwargs": [["alpha", {"float":
 * "0.5"}]]}, where a tensor is its place among tensors. Returns NULL, and in results
 * count tensors of the caller's, each ended by its deleter; or an error. A result that
 * is a view has the memory of its argument, which has to outlive it. */
char *plumb_call(const char *name, const char *arguments, const DLTensor *const *tensors, int n,
                 DLManagedTensor **results, int room, int *count);

/* Checks and binds a call, {"name": …, "args": …, "kwargs": …}, where a tensor is
 * {"tensor": ["float32", shape, strides]}, to be run often. Returns {"plan": 3,
 * "results": [{"dtype", "shape", "strides"}], …}, or an error. With "new" the results
 * are known once they are computed: see plumb_run_new. */
char *plumb_prepare(const char *call, size_t length);

/* Computes a plan from the addresses of tensors' first elements into results that
 * are laid out as it says. Returns NULL or an error. */
char *plumb_run(int64_t plan, void *const *tensors, int n, void *const *results, int m);

/* Computes a plan into results of its own, as plumb_call does; shares[i] is the
 * tensor whose memory results[i] has, -1 for none. */
char *plumb_run_new(int64_t plan, void *const *tensors, int n, DLManagedTensor **results, int *shares, int room,
                    int *count);

void plumb_forget(int64_t plan);
void plumb_seed(uint64_t seed);           /* of what random operators draw */
char *plumb_operators(void);              /* their names, a JSON array */
char *plumb_describe(const char *name);   /* signatures, documentation, schemas for torch.library */
void plumb_delete(DLManagedTensor *);     /* calls the deleter */
void plumb_free(char *);

#ifdef __cplusplus
}
#endif
#endif
