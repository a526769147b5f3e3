// A worker for Plumb in C: relu and add of float32 tensors, forward only.
// It follows docs/worker-protocol.md; what it cannot do is "unsupported".
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// JSON is read in place: a value is a pointer to its first character, and the
// host sends no space between tokens.
static const char *skip(const char *p) {
	int depth = 0;
	do {
		if (*p == '"') {
			while (*++p != '"')
				if (*p == '\\') p++;
		} else if (*p == '[' || *p == '{') depth++;
		else if (*p == ']' || *p == '}') depth--;
		p++;
	} while (depth > 0 || (*p && !strchr(",]}:", *p)));
	return p;
}

// at returns element i of an array, or NULL.
static const char *at(const char *p, int i) {
	if (!p || *p != '[' || *++p == ']') return NULL;
	for (; i > 0; i--, p++)
		if (*(p = skip(p)) != ',') return NULL;
	return p;
}

// get returns the value of a key of an object, or NULL.
static const char *get(const char *p, const char *key) {
	size_t n = strlen(key);
	if (!p || *p != '{' || *++p == '}') return NULL;
	for (;; p++) {
		const char *value = skip(p) + 1;
		if (!strncmp(p + 1, key, n) && p[n + 1] == '"') return value;
		if (*(p = skip(value)) != ',') return NULL;
	}
}

// extra says whether an object has keys beside two.
static int extra(const char *p, const char *one, const char *two) {
	int n = 0;
	if (!p || p[1] == '}') return 0;
	for (p++;; p++, n++)
		if (*(p = skip(skip(p) + 1)) != ',') break;
	return n + 1 > (one && 1) + (two && 1);
}

static int is(const char *p, const char *json) { return p && skip(p) - p == (long)strlen(json) && !strncmp(p, json, strlen(json)); }

static char *region, reply[1 << 26];
static size_t mapped, out, used;

// map makes the region at least size bytes long, and maps all of it.
static void map(size_t size) {
	struct stat s;
	if (region) munmap(region, mapped);
	if (fstat(5, &s) || ((size_t)s.st_size < size && ftruncate(5, size))) exit(70);
	mapped = (size_t)s.st_size < size ? size : (size_t)s.st_size;
	region = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0);
	if (region == MAP_FAILED) exit(70);
}

#define SAY(...) (used += snprintf(reply + used, sizeof reply - used, __VA_ARGS__))

// input is the tensor that argument i of the call, or the keyword, refers to.
static const char *input(const char *c, const char *call, int i, const char *keyword) {
	const char *ref = at(at(call, 1), i), *t;
	if (!ref) ref = get(at(call, 2), keyword);
	if (!is(at(ref, 0), "\"r\"") || !(t = at(get(c, "inputs"), atoi(at(ref, 1))))) return NULL;
	return is(at(t, 0), "\"float32\"") && is(at(t, 3), "null") ? t : NULL; // contiguous
}

// run answers one case, or gives the reason why it cannot.
static const char *run(const char *c) {
	const char *call = at(get(c, "calls"), 0), *x, *y;
	int relu = is(at(call, 0), "\"torch.relu\"") || is(at(call, 0), "\"torch.nn.functional.relu\"");
	if (!relu && !is(at(call, 0), "\"torch.add\"")) return "only relu and add exist";
	const char *kwargs = at(call, 2);
	if (at(get(c, "calls"), 1) || at(at(call, 1), 2 - relu) || extra(kwargs, get(kwargs, "input"), get(kwargs, "other"))) return "one plain call at a time";
	x = input(c, call, 0, "input");
	y = relu ? x : input(c, call, 1, "other");
	if (!x || !y) return "want contiguous float32 tensors";
	const char *shape = at(x, 2);
	int width = skip(shape) - shape;
	if (skip(at(y, 2)) - at(y, 2) != width || strncmp(at(y, 2), shape, width)) return "want tensors of one shape";
	long n = 1, to = (out + 63) / 64 * 64;
	for (int i = 0; at(shape, i); i++) n *= atol(at(shape, i));
	if ((size_t)(to + 4 * n) > mapped) map(to + 4 * n);
	float *a = (float *)(region + atol(at(x, 1))), *b = (float *)(region + atol(at(y, 1))), *z = (float *)(region + to);
	for (long i = 0; i < n; i++) z[i] = relu ? (a[i] < 0 ? 0 : a[i]) : a[i] + b[i];
	out = to + 4 * n;
	SAY("{\"status\":\"ok\",\"values\":[[\"t\",\"float32\",%ld,%.*s,null,false]]}", to, width, shape);
	return NULL;
}

static void answer(const char *request) {
	const char *c, *reason;
	used = 4;
	if (get(request, "signatures")) {
		SAY("{\"signatures\":null}");
	} else {
		if ((size_t)atol(get(request, "size")) > mapped) map(atol(get(request, "size")));
		out = atol(get(request, "out"));
		SAY("{\"id\":%ld,\"cases\":[", atol(get(request, "id")));
		for (uint32_t i = 0; (c = at(get(request, "cases"), i)); i++) {
			uint32_t now[2] = {i + 1, 0};
			memcpy(region, now, sizeof now);
			if (i > 0) SAY(",");
			if ((reason = run(c))) SAY("{\"status\":\"unsupported\",\"class\":\"NotImplementedError\",\"message\":\"%s\",\"call\":0,\"values\":[]}", reason);
		}
		SAY("],\"size\":%zu}", mapped);
	}
	uint32_t size = used - 4; // little-endian, as the frame's
	memcpy(reply, &size, 4);
	for (size_t done = 0; done < used;) {
		ssize_t k = write(4, reply + done, used - done);
		if (k <= 0) exit(70);
		done += k;
	}
}

static int fill(char *into, size_t n) {
	for (ssize_t k; n > 0; into += k, n -= k)
		if ((k = read(3, into, n)) <= 0) return 0;
	return 1;
}

int main(void) {
	uint32_t size;
	map(0);
	dprintf(4, "plumb-worker 1 {\"name\":\"ownworker\",\"version\":\"1\",\"gradients\":\"program\",\"devices\":[\"cpu\"],\"modes\":[\"eager\"],\"features\":{},\"cpu\":0}\n");
	while (fill((char *)&size, 4)) {
		char *request = malloc((size_t)size + 1);
		if (!request || !fill(request, size)) exit(70);
		request[size] = 0;
		answer(request);
		free(request);
	}
	return 0;
}
