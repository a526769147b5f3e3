// A worker for Plumb in C++, on the kit in C: a function is a loop over typed
// elements, and what it throws is an exception of the call.
#include "plumb_worker.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

// guarded keeps exceptions out of the kit, which is C.
template <void (*F)(plumb_call *)> void guarded(plumb_call *c) {
	try {
		F(c);
	} catch (const std::out_of_range &e) {
		plumb_raise(c, "IndexError", "%s", e.what());
	} catch (const std::exception &e) {
		plumb_raise(c, "RuntimeError", "%s", e.what());
	}
}

template <typename T, typename F> void each(const plumb_tensor &x, const plumb_tensor &y, F f) {
	const T *from = static_cast<const T *>(x.data);
	std::transform(from, from + y.count, static_cast<T *>(y.data), f);
}

// typed calls f on the elements of a tensor of floats, in their own type.
template <typename F> void typed(plumb_call *c, F f) {
	plumb_tensor x = plumb_tensor_arg(c, 0, "input"), y = plumb_result(c, x.dtype, x.rank, x.shape);
	if (plumb_failed(c)) return;
	switch (x.dtype) {
	case PLUMB_FLOAT32: return each<float>(x, y, f);
	case PLUMB_FLOAT64: return each<double>(x, y, f);
	}
	plumb_unsupported(c, "%s", plumb_name(x.dtype));
}

void relu(plumb_call *c) {
	typed(c, [](auto v) { return v < 0 ? decltype(v)(0) : v; });
}

void threshold(plumb_call *c) {
	double limit = plumb_float(c, 1, "threshold", 0), value = plumb_float(c, 2, "value", 0);
	typed(c, [=](auto v) { return v <= decltype(v)(limit) ? decltype(v)(value) : v; });
}

void index_select(plumb_call *c) {
	plumb_tensor x = plumb_tensor_arg(c, 0, "input"), index = plumb_tensor_arg(c, 2, "index");
	int dim = plumb_dim(c, plumb_int(c, 1, "dim", PLUMB_REQUIRED), x.rank);
	if (plumb_failed(c)) return;
	if (x.rank == 0 || index.rank != 1 || !plumb_is_int(index.dtype)) return plumb_unsupported(c, "these arguments");
	std::vector<int64_t> from(size_t(x.shape[dim])), picked;
	std::iota(from.begin(), from.end(), 0);
	for (int64_t i = 0; i < index.count; i++) picked.push_back(from.at(size_t(plumb_get_int(&index, i))));
	plumb_tensor wide = x;
	wide.shape[dim] = index.count;
	plumb_tensor y = plumb_result(c, x.dtype, x.rank, wide.shape);
	size_t row = size_t(x.strides[dim]) * plumb_size(x.dtype);
	for (int64_t i = 0; row && i < int64_t(size_t(y.count) * plumb_size(y.dtype) / row); i++) {
		int64_t outer = i / index.count, at = outer * x.shape[dim] + picked[size_t(i % index.count)];
		std::memcpy(static_cast<char *>(y.data) + size_t(i) * row, static_cast<char *>(x.data) + size_t(at) * row, row);
	}
}

const plumb_function functions[] = {
	{"torch.relu", guarded<relu>, 0},
	{"torch.threshold", guarded<threshold>, 0},
	{"torch.index_select", guarded<index_select>, 0},
	{nullptr, nullptr, 0},
};

} // namespace

int main() {
	plumb_subject subject = {"ownworker-cpp", "1", functions, 0};
	return plumb_serve(&subject);
}
