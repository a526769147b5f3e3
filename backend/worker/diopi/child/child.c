// A worker of docs/worker-protocol.md that loads a library with DIOPI's
// interface and calls one of its functions at a time: a case is one call, whose
// target is the function's name, and its value the tensors that it may write.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct { const int64_t *data; int64_t len; } size_list;
typedef struct { int stype; union { double fval; int64_t ival; }; } scalar;
typedef struct { uint64_t seed, offset; } generator;

// A tensor's buffer ends where pages without access begin, up to the alignment of 16
// bytes, as many as a fence has; what is left of its pages around it is filled with canary.
typedef struct tensor {
	int64_t shape[16], stride[16], rank, count;
	int dtype, device;
	char *pages, *data;
	size_t mapped, bytes;
	struct tensor *crow, *col, *values; // of a matrix in CSR layout, whose data is no part of it
	struct tensor *next; // of the context
} tensor;

typedef struct { tensor *all; generator *gen; } context;

typedef union {
	void *p; size_list z; scalar s; int64_t i; double d; bool b; const char *n;
} value;

enum { canary = 0xA5, poison = 0xFB, most = 64, no_implement = 13, to_cpu = 14, no_dtype = 1000, no_5d = 12 };

static const struct { const char *name; int code; size_t size; } dtypes[] = {
	{"int8", 0, 1}, {"uint8", 1, 1}, {"int16", 2, 2}, {"int32", 4, 4}, {"int64", 6, 8},
	{"float16", 8, 2}, {"float32", 9, 4}, {"float64", 10, 8}, {"bool", 11, 1},
	{"bfloat16", 12, 2}, {"complex64", 15, 8}, {"complex128", 16, 16},
};
enum { kinds_of_dtype = sizeof dtypes / sizeof *dtypes };

static const char *running = "nothing";
static context ctx;
static generator default_generator;
static long page, fence;

static void die(const char *what, long n) {
	dprintf(2, "%s: %s %ld\n", running, what, n);
	abort();
}

static size_t size_of(int dtype) {
	for (int i = 0; i < kinds_of_dtype; i++)
		if (dtypes[i].code == dtype) return dtypes[i].size;
	return 0;
}

// allocate gives a tensor its pages, where bytes is how many its elements span.
static void allocate(tensor *t, size_t bytes) {
	size_t room = ((bytes + 15) / 16 * 16 + page - 1) / page * page;
	t->mapped = room + 2 * fence;
	t->pages = mmap(NULL, t->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->pages == MAP_FAILED || (room && mprotect(t->pages + fence, room, PROT_READ | PROT_WRITE))) die("no memory for bytes:", bytes);
	t->bytes = bytes;
	t->data = t->pages + fence + room - (bytes + 15) / 16 * 16;
	memset(t->pages + fence, canary, room);
	memset(t->data, poison, bytes);
}

static size_t span(const tensor *t) {
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++) {
		if (t->shape[i] == 0) return 0;
		n += (t->shape[i] - 1) * t->stride[i];
	}
	return n * size_of(t->dtype);
}

// make returns a tensor of the context; stride may be NULL for contiguous.
static tensor *make(int dtype, const int64_t *shape, int64_t rank, const int64_t *stride) {
	if (rank < 0 || rank > 16 || !size_of(dtype)) return NULL;
	tensor *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	t->dtype = dtype, t->rank = rank, t->device = 1, t->count = 1;
	for (int i = rank - 1; i >= 0; i--) {
		t->shape[i] = shape[i];
		t->stride[i] = stride ? stride[i] : t->count;
		t->count *= shape[i];
		if (shape[i] < 0 || t->count > (int64_t)1 << 36) { free(t); return NULL; }
	}
	allocate(t, span(t));
	t->next = ctx.all, ctx.all = t;
	return t;
}

// intact ends the process if the bytes around a buffer are no longer canary.
static void intact(const tensor *t) {
	const unsigned char *from = (unsigned char *)t->pages + fence, *end = (unsigned char *)t->pages + t->mapped - fence;
	const unsigned char *data = (unsigned char *)t->data;
	for (const unsigned char *p = from; p < end; p++)
		if ((p < data || p >= data + t->bytes) && *p != canary)
			die(p < data ? "wrote before a tensor's elements, at byte" : "wrote beyond a tensor's elements, at byte", p - data);
}

static void clear_context(void) {
	for (tensor *t = ctx.all, *next; t; t = next) {
		next = t->next;
		munmap(t->pages, t->mapped);
		free(t);
	}
	ctx.all = NULL;
}

// What the library asks of its host, as in diopirt.h.
const char *diopiGetVersion(void) { return "DIOPI Version: 1.0.0"; }
int diopiGetTensorData(tensor *t, void **p) { *p = t->data; return 0; }
int diopiGetTensorDataConst(const tensor *t, const void **p) { *p = t->data; return 0; }
int diopiGetTensorShape(const tensor *t, size_list *s) { *s = (size_list){t->shape, t->rank}; return 0; }
int diopiGetTensorStride(const tensor *t, size_list *s) { *s = (size_list){t->stride, t->rank}; return 0; }
int diopiGetTensorDtype(const tensor *t, int *d) { *d = t->dtype; return 0; }
int diopiGetTensorDevice(const tensor *t, int *d) { *d = t->device; return 0; }
int diopiGetTensorNumel(const tensor *t, int64_t *n) { *n = t->count; return 0; }
int diopiGetTensorElemSize(const tensor *t, int64_t *n) { *n = size_of(t->dtype); return 0; }
int diopiGetTensorStoragePtr(const tensor *t, void **p) { *p = t->data; return 0; }
int diopiGetTensorStorageOffset(const tensor *t, int64_t *n) { (void)t; *n = 0; return 0; }
int diopiGetTensorStorageNbytes(const tensor *t, size_t *n) { *n = t->bytes; return 0; }
int diopiGetTensorDeviceIndex(const tensor *t, int8_t *i) { (void)t; *i = 0; return 0; }
int diopiGetCurrentDeviceIndex(int8_t *i) { *i = 0; return 0; }
int diopiGetTensorCrowIndices(const tensor *t, const tensor **p) { *p = t->crow; return t->crow ? 0 : no_implement; }
int diopiGetTensorColIndices(const tensor *t, const tensor **p) { *p = t->col; return t->col ? 0 : no_implement; }
int diopiGetTensorValues(const tensor *t, const tensor **p) { *p = t->values; return t->values ? 0 : no_implement; }
int diopiIsTensorSparse(const tensor *t, bool *b) { *b = t->crow; return 0; }
int diopiGetStream(context *c, void **s) { (void)c; *s = NULL; return 0; }
int diopiRequireTensor(context *c, tensor **t, const size_list *size, const size_list *stride, int dtype, int device) {
	(void)c;
	*t = make(dtype, size->data, size->len, stride ? stride->data : NULL);
	if (!*t) return size_of(dtype) ? 6 : no_dtype;
	(*t)->device = device;
	return 0;
}
int diopiRequireBuffer(context *c, tensor **t, int64_t bytes, int device) {
	return diopiRequireTensor(c, t, &(size_list){&bytes, 1}, NULL, 0, device);
}
int diopiGeneratorGetState(context *c, const generator *g, tensor **t) {
	int64_t n = sizeof *g;
	int rc = diopiRequireTensor(c, t, &(size_list){&n, 1}, NULL, 1, 0);
	if (rc == 0) memcpy((*t)->data, g, sizeof *g);
	return rc;
}
int diopiGeneratorSetState(generator *g, const tensor *t) {
	if (t->bytes < sizeof *g) return 1;
	memcpy(g, t->data, sizeof *g);
	return 0;
}
int diopiGeneratorGetSeedAndOffset(generator *g, uint64_t *seed, uint64_t *offset) { *seed = g->seed, *offset = g->offset; return 0; }
int diopiGeneratorSetSeedAndOffset(generator *g, uint64_t seed, uint64_t offset) { *g = (generator){seed, offset}; return 0; }
int diopiRecordStart(const char *name, void **r) { (void)name; *r = NULL; return 0; }
int diopiRecordEnd(void **r) { (void)r; return 0; }
int diopiInit(void) { return 0; }
int diopiFinalize(void) { return 0; }
int diopiTensorCopyFromBuffer(context *c, const void *p, tensor *t) { (void)c; memcpy(t->data, p, t->bytes); return 0; }
int diopiTensorCopyToBuffer(context *c, const tensor *t, void *p) { (void)c; memcpy(p, t->data, t->bytes); return 0; }

// The functions of the interface, which Plumb writes below this file.
typedef struct { const char *name, *kinds; int (*call)(void *f, value *a); } function;
extern const function plumb_functions[];

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
		const char *v = skip(p) + 1;
		if (!strncmp(p + 1, key, n) && p[n + 1] == '"') return v;
		if (*(p = skip(v)) != ',') return NULL;
	}
}

static bool is(const char *p, const char *text) {
	size_t n = strlen(text);
	return p && *p == '"' && !strncmp(p + 1, text, n) && p[n + 1] == '"';
}

static char *region, *reply;
static size_t mapped, out, used, room;

static void say(const char *text) {
	size_t n = strlen(text);
	if (used + n + 1 > room && !(reply = realloc(reply, room = 2 * (used + n) + 4096))) exit(70);
	memcpy(reply + used, text, n + 1);
	used += n;
}

static void say_int(int64_t n) {
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)n);
	say(text);
}

// say_text appends a JSON string; what is not plain ASCII becomes "?".
static void say_text(const char *text) {
	char one[2] = "";
	say("\"");
	for (int i = 0; text[i] && i < 2000; i++) {
		*one = text[i] == '\n' ? ' ' : text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\' ? '?' : text[i];
		say(one);
	}
	say("\"");
}

// map makes the region at least size bytes long, and maps all of it.
static void map(size_t size) {
	struct stat s;
	if (region) munmap(region, mapped);
	if (fstat(5, &s) || ((size_t)s.st_size < size && ftruncate(5, size))) exit(70);
	mapped = (size_t)s.st_size < size ? size : (size_t)s.st_size;
	region = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0);
	if (region == MAP_FAILED) exit(70);
}

static int dtype_of(const char *json) {
	for (int i = 0; i < kinds_of_dtype; i++)
		if (is(json, dtypes[i].name)) return dtypes[i].code;
	return 255;
}

static int numbers(const char *list, int64_t *into) {
	int n = 0;
	for (const char *p; n < 16 && (p = at(list, n)); n++) into[n] = atoll(p);
	return n;
}

static double number(const char *p) {
	if (*p != '[') return *p == 't' ? 1 : *p == 'f' ? 0 : atof(p);
	const char *text = at(p, 1) + 1;
	return *text == 'n' ? __builtin_nan("") : *text == '-' ? -__builtin_inf() : __builtin_inf();
}

// The tensors of the call: which the reply holds, and what the others were.
static struct { tensor *t, **handle; char *was; } given[most * 16];
static int tensors;

static void *keep(tensor *t, tensor **handle, bool constant) {
	if (tensors == most * 16) exit(70);
	given[tensors].t = t, given[tensors].handle = handle, given[tensors].was = NULL;
	if (constant && t && (given[tensors].was = malloc(t->bytes + 1))) memcpy(given[tensors].was, t->data, t->bytes);
	tensors++;
	return t;
}

static tensor *one(const char *c, const char *arg);

// sparse makes a matrix of ["csr", crow, col, values, shape].
static tensor *sparse(const char *c, const char *parts) {
	int64_t shape[16];
	tensor *crow = one(c, at(parts, 1)), *col = one(c, at(parts, 2)), *values = one(c, at(parts, 3));
	if (!crow || !col || !values || numbers(at(at(parts, 4), 1), shape) != 2) return NULL;
	tensor *t = make(values->dtype, shape, 2, NULL);
	if (t) t->crow = keep(crow, NULL, true), t->col = keep(col, NULL, true), t->values = keep(values, NULL, true);
	return t;
}

// one makes a tensor of a reference, of ["out", dtype, shape], or one that is sparse.
static tensor *one(const char *c, const char *arg) {
	int64_t shape[16], stride[16];
	const char *ref = at(arg, 0), *in;
	if (is(ref, "u")) {
		const char *parts = at(arg, 1);
		if (is(at(parts, 0), "csr")) return sparse(c, parts);
		return make(dtype_of(at(at(parts, 1), 1)), shape, numbers(at(at(parts, 2), 1), shape), NULL);
	}
	if (!is(ref, "r") || !(in = at(get(c, "inputs"), atoi(at(arg, 1))))) return NULL;
	int rank = numbers(at(in, 2), shape);
	bool strided = *at(in, 3) == '[';
	if (strided) numbers(at(in, 3), stride);
	tensor *t = make(dtype_of(at(in, 0)), shape, rank, strided ? stride : NULL);
	if (t) memcpy(t->data, region + atoll(at(in, 1)), t->bytes);
	return t;
}

static int64_t lists[most][16];
static void *handles[most * 16];
static char texts[most][64];
static int handed;

// convert makes the C argument of a kind; false where it cannot.
static bool convert(const char *c, const char *arg, char kind, int i, value *v) {
	bool none = *arg == 'n';
	memset(v, 0, sizeof *v);
	switch (kind) {
	case 't': case 'c':
		return none || (v->p = keep(one(c, arg), NULL, kind == 'c'));
	case 'T': case 'C': {
		void **list = handles + handed;
		v->p = list;
		if (is(at(at(arg, 1), 0), "new")) {
			*list = NULL, handed++;
			keep(NULL, (tensor **)list, false);
			return true;
		}
		for (int k = 0; at(at(arg, 1), k); k++) {
			if (handed == most * 16) return false;
			const char *e = at(at(arg, 1), k);
			if (!(handles[handed++] = *e == 'n' ? NULL : keep(one(c, e), NULL, kind == 'C')) && *e != 'n') return false;
		}
		return true;
	}
	case 'z': case 'Z':
		if (none && kind == 'Z') return true;
		if (!none && at(at(arg, 1), 16)) return false; // more than it has room for
		v->z = (size_list){lists[i], none ? 0 : numbers(at(arg, 1), lists[i])};
		if (kind == 'Z') {
			static size_list kept[most];
			kept[i] = v->z;
			v->p = &kept[i];
		}
		return true;
	case 's': {
		static scalar kept[most];
		if (none) return true;
		if (strpbrk(arg, ".en[") && strpbrk(arg, ".en[") < skip(arg) && *arg != 't' && *arg != 'f') kept[i].stype = 10, kept[i].fval = number(arg);
		else kept[i].stype = 6, kept[i].ival = *arg == 't' ? 1 : *arg == 'f' ? 0 : atoll(arg);
		v->p = &kept[i];
		return true;
	}
	case 'i': case 'w': case 'r': case 'm': case 'o':
		v->i = *arg == 't' ? 1 : *arg == 'f' ? 0 : atoll(arg);
		return !none;
	case 'I':
		if (!none) lists[i][0] = atoll(arg), v->p = lists[i];
		return true;
	case 'd': case 'f':
		v->d = none ? 0 : number(arg);
		return !none;
	case 'D': case 'B':
		if (*arg == '[' && is(at(arg, 0), "u")) { // that is written
			tensor *t = keep(one(c, arg), NULL, false);
			v->p = t ? t->data : NULL;
			return t != NULL;
		}
		if (!none && kind == 'B') *(bool *)lists[i] = *arg == 't', v->p = lists[i];
		else if (!none) { double d = number(arg); memcpy(lists[i], &d, sizeof d); v->p = lists[i]; }
		return true;
	case 'b':
		v->b = *arg == 't';
		return !none;
	case 'n':
		if (!none) snprintf(texts[i], sizeof texts[i], "%.*s", (int)(skip(arg) - arg - 2), arg + 1), v->n = texts[i];
		return true;
	case 'g':
		v->p = &default_generator;
		return true;
	}
	return false;
}

static const char *failed(const char *status, const char *class, const char *message) {
	say("{\"status\":\"");
	say(status);
	say("\",\"class\":\"");
	say(class);
	say("\",\"message\":");
	say_text(message);
	say(",\"call\":0,\"values\":[]}");
	return NULL;
}

static void *library;

// refused answers a call whose code is not diopiSuccess.
static void refused(int code) {
	char message[600];
	const char *(*last)(void) = (const char *(*)(void))dlsym(library, "diopiGetLastErrorString");
	const char *why = last ? last() : NULL;
	bool gap = code == no_implement || code == to_cpu || code == no_dtype || code == no_5d;
	snprintf(message, sizeof message, "%s returned %d%s%.500s", running, code, why && *why ? ": " : "", why ? why : "");
	failed(gap ? "unsupported" : "raised", gap ? "NotImplementedError" : "RuntimeError", message);
}

static void say_tensor(const tensor *t) {
	int64_t to = (out + 63) / 64 * 64;
	if (to + t->bytes > mapped) map(to + t->bytes);
	memcpy(region + to, t->data, t->bytes);
	out = to + t->bytes;
	say("[\"t\",\"");
	for (int i = 0; i < kinds_of_dtype; i++)
		if (dtypes[i].code == t->dtype) say(dtypes[i].name);
	say("\",");
	say_int(to);
	for (int part = 0; part < 2; part++) {
		say(",[");
		for (int i = 0; i < t->rank; i++) {
			if (i) say(",");
			say_int(part ? t->stride[i] : t->shape[i]);
		}
		say("]");
	}
	say(",false]");
}

static void results(void) {
	say("{\"status\":\"ok\",\"values\":[[\"u\",[");
	for (int i = 0, n = 0; i < tensors; i++) {
		tensor *t = given[i].handle ? *given[i].handle : given[i].t;
		if (given[i].was) continue;
		if (n++) say(",");
		if (t) say_tensor(t);
		else say("null");
	}
	say("]]]}");
}

// run answers one case: a call of a function with as many arguments as it has
// parameters after the context.
static void run(const char *c) {
	char name[128];
	value args[most];
	const char *call = at(get(c, "calls"), 0), *list = at(call, 1);
	snprintf(name, sizeof name, "%.*s", (int)(skip(at(call, 0)) - at(call, 0) - 2), at(call, 0) + 1);
	running = name;
	const function *f = plumb_functions;
	while (f->name && strcmp(f->name, name)) f++;
	void *symbol = dlsym(library, name);
	if (!f->name || !symbol) {
		char message[200];
		snprintf(message, sizeof message, "the library has no %s", name);
		failed("unsupported", "NotImplementedError", message);
		return;
	}
	default_generator = (generator){strtoull(get(c, "seed"), NULL, 10), 0};
	tensors = handed = 0;
	for (int i = 0; f->kinds[i]; i++)
		if (!at(list, i) || !convert(c, at(list, i), f->kinds[i], i, &args[i])) {
			failed("unsupported", "NotImplementedError", "the interface has no form for an argument");
			goto done;
		}
	int code = f->call(symbol, args);
	for (tensor *t = ctx.all; t; t = t->next) intact(t);
	for (int i = 0; i < tensors; i++)
		if (given[i].was && memcmp(given[i].was, given[i].t->data, given[i].t->bytes)) die("changed its constant tensor argument", i);
	if (code) refused(code);
	else results();
done:
	for (int i = 0; i < tensors; i++) free(given[i].was);
	clear_context();
}

static void answer(const char *request) {
	const char *c;
	used = 0;
	say("....");
	if (get(request, "signatures")) {
		say("{\"signatures\":null}");
	} else {
		if ((size_t)atoll(get(request, "size")) > mapped) map(atoll(get(request, "size")));
		out = atoll(get(request, "out"));
		say("{\"id\":");
		say_int(atoll(get(request, "id")));
		say(",\"cases\":[");
		for (uint32_t i = 0; (c = at(get(request, "cases"), i)); i++) {
			uint32_t now[2] = {i + 1, 0};
			memcpy(region, now, sizeof now);
			if (i > 0) say(",");
			run(c);
		}
		say("],\"size\":");
		say_int(mapped);
		say("}");
	}
	uint32_t size = used - 4; // little-endian, as the frame's
	memcpy(reply, &size, 4);
	for (size_t done = 0; done < used;) {
		ssize_t k = write(4, reply + done, used - done);
		if (k <= 0) exit(70);
		done += k;
	}
}

static bool fill(char *into, size_t n) {
	for (ssize_t k; n > 0; into += k, n -= k)
		if ((k = read(3, into, n)) <= 0) return false;
	return true;
}

// tell_fault says where a wild access was, then lets the signal end the process.
static void tell_fault(int sig, siginfo_t *info, void *unused) {
	(void)unused;
	char *p = info->si_addr;
	signal(sig, SIG_DFL);
	for (tensor *t = ctx.all; t; t = t->next)
		if (p >= t->pages && p < t->pages + t->mapped) dprintf(2, "%s: access at byte %ld of a tensor of %zu bytes\n", running, (long)(p - t->data), t->bytes);
	raise(sig);
}

// bound holds the address space to what the host allows.
static void bound(void) {
	const char *text = getenv("PLUMB_WORKER_MEMORY");
	rlim_t bytes = text ? strtoull(text, NULL, 10) : 0;
	if (bytes) setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
}

static const char *told(const char *name) {
	const char *(*f)(void) = (const char *(*)(void))dlsym(library, name);
	return f ? f() : "";
}

int main(int argc, char **argv) {
	uint32_t size;
	page = sysconf(_SC_PAGESIZE), fence = 16 * page;
	bound();
	map(0);
	if (argc != 2 || !(library = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL))) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "want the path of a library");
		return 70;
	}
	static char stack[1 << 16];
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
	struct sigaction act = {.sa_sigaction = tell_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	say("plumb-worker 1 {\"name\":\"diopi\",\"version\":");
	char version[200];
	snprintf(version, sizeof version, "%.80s %.80s", told("diopiGetVendorName"), told("diopiGetImplVersion"));
	say_text(version);
	say(",\"devices\":[\"cpu\"],\"modes\":[\"eager\"],\"features\":{},\"cpu\":0}\n");
	if (write(4, reply, used) != (ssize_t)used) return 70;
	while (fill((char *)&size, 4)) {
		char *request = malloc((size_t)size + 1);
		if (!request || !fill(request, size)) exit(70);
		request[size] = 0;
		answer(request);
		free(request);
	}
	return 0;
}
