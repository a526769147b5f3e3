/* plumb_call from C: leaky_relu_yzh of a matrix that is stored by columns, an error, a view. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "plumb.h"

int main(void) {
	float x[] = {-4, 1, -8, 2};
	int64_t shape[] = {2, 2}, strides[] = {1, 2};
	DLTensor t = {x, {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
	const DLTensor *tensors[] = {&t};
	DLManagedTensor *y;
	int n;
	char *error = plumb_call("leaky_relu_yzh", "{\"args\": [{\"tensor\": 0}, {\"float\": \"0.25\"}]}", tensors, 1, &y, 1, &n);
	if (error) {
		puts(error);
		return 1;
	}
	assert(n == 1 && y->dl_tensor.ndim == 2 && y->dl_tensor.dtype.bits == 32);
	const float *out = y->dl_tensor.data;
	const int64_t *s = y->dl_tensor.strides;
	assert(out[0] == -1 && out[s[0]] == 1 && out[s[1]] == -2 && out[s[0] + s[1]] == 2);
	y->deleter(y);

	error = plumb_call("t", "{\"args\": [{\"tensor\": 0}]}", tensors, 1, &y, 1, &n);
	assert(!error && y->dl_tensor.data == x);
	plumb_delete(y);

	error = plumb_call("leaky_relu_yzh", "{\"args\": [{\"tensor\": 0}], \"kwargs\": [[\"alpha\", \"a\"]]}", tensors, 1, &y, 1, &n);
	assert(error && strstr(error, "TypeError") && strstr(error, "\"argument\":\"alpha\""));
	plumb_free(error);
	t.device.device_type = 2;
	error = plumb_call("relu", "{\"args\": [{\"tensor\": 0}]}", tensors, 1, &y, 1, &n);
	assert(error && strstr(error, "device"));
	plumb_free(error);
	puts("ok");
	return 0;
}
