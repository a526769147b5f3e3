/* The kit of plumb_worker.h: requests, shared memory, arguments, results. It is
 * C99, and C++ as well. */
#include "plumb_worker.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 3, REPLIES = 4, REGION = 5, OWN_FAULT = 70, ALIGN = 64, DEPTH = 64, TEXT = 1024 };
static const size_t MOST_FRAME = (size_t)64 << 20;
static const int64_t MOST_BYTES = (int64_t)1 << 40; /* of a tensor, and of the region */

static void die(const char *why) {
	fprintf(stderr, "plumb_worker: %s\n", why);
	exit(OWN_FAULT);
}

/* Memory that lasts until a mark is given back. */
typedef struct block {
	struct block *before;
	char pad[ALIGN - sizeof(void *)];
} block;

static void *take(block **last, size_t bytes) {
	block *b;
	if (bytes > (size_t)MOST_BYTES || posix_memalign((void **)&b, ALIGN, sizeof(block) + bytes)) return NULL;
	b->before = *last;
	*last = b;
	return memset(b + 1, 0, bytes);
}

static void give_back(block **last) {
	while (*last) {
		block *b = *last;
		*last = b->before;
		free(b);
	}
}

/* JSON: a tree over the text of the request. Texts are unescaped where they lie. */
typedef enum { NONE, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT } json;

typedef struct node {
	json kind;
	int read;                  /* by the function */
	const char *key, *text;    /* of a member of an object; of a string or number */
	struct node *first, *next;
} node;

typedef struct {
	char *p, *end; /* *end is 0 */
	block *memory;
	node *pool;
	size_t left;
} parser;

static node *new_node(parser *s) {
	enum { MANY = 256 };
	if (s->left == 0) {
		s->left = MANY;
		if (!(s->pool = (node *)take(&s->memory, MANY * sizeof(node)))) die("out of memory for a request");
	}
	s->left--;
	return s->pool++;
}

static void space(parser *s) {
	while (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t') s->p++;
}

static void want(parser *s, char c) {
	space(s);
	if (*s->p != c) die("a request that is not JSON");
	s->p++;
}

static unsigned hex4(parser *s) {
	unsigned v = 0;
	for (int i = 0; i < 4; i++, s->p++) {
		char c = *s->p;
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (digit < 0) die("a request with a broken escape");
		v = 16 * v + (unsigned)digit;
	}
	return v;
}

static char *utf8(char *to, unsigned v) {
	if (v < 0x80) {
		*to++ = (char)v;
		return to;
	}
	int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
	*to++ = (char)((0xff00 >> (more + 1) & 0xff) | v >> 6 * more);
	while (more-- > 0) *to++ = (char)(0x80 | (v >> 6 * more & 0x3f));
	return to;
}

static const char *string(parser *s) {
	want(s, '"');
	char *start = s->p, *to = s->p;
	while (*s->p != '"') {
		if (s->p >= s->end) die("a request with an open string");
		if (*s->p != '\\') {
			*to++ = *s->p++;
			continue;
		}
		char c = s->p[1];
		if (!c) die("a request with an open string");
		s->p += 2;
		if (c == 'u') {
			unsigned v = hex4(s);
			if (v >= 0xd800 && v < 0xdc00 && s->p[0] == '\\' && s->p[1] == 'u') {
				s->p += 2;
				v = 0x10000 + ((v - 0xd800) << 10) + ((hex4(s) - 0xdc00) & 0x3ff);
			}
			to = utf8(to, v);
			continue;
		}
		const char *from = "bfnrt", *into = "\b\f\n\r\t", *at = strchr(from, c);
		*to++ = at ? into[at - from] : c;
	}
	*to = 0; /* at the quote or before it */
	s->p++;
	return start;
}

static node *value(parser *s, int depth);

static void members(parser *s, node *v, char close, int depth) {
	node **at = &v->first;
	s->p++;
	space(s);
	for (int n = 0; *s->p != close; n++) {
		if (n > 0) want(s, ',');
		const char *key = NULL;
		if (v->kind == OBJECT) {
			key = string(s);
			want(s, ':');
		}
		*at = value(s, depth + 1);
		(*at)->key = key;
		at = &(*at)->next;
		space(s);
	}
	s->p++;
}

static node *value(parser *s, int depth) {
	static const struct { const char *word; json kind; } words[] = {{"null", NONE}, {"true", TRUE}, {"false", FALSE}};
	node *v = new_node(s);
	if (depth > DEPTH) die("a request that is nested too deep");
	space(s);
	if (*s->p == '"') {
		v->kind = STRING;
		v->text = string(s);
		return v;
	}
	if (*s->p == '[' || *s->p == '{') {
		v->kind = *s->p == '[' ? ARRAY : OBJECT;
		members(s, v, *s->p == '[' ? ']' : '}', depth);
		return v;
	}
	for (int i = 0; i < 3; i++)
		if (!strncmp(s->p, words[i].word, strlen(words[i].word))) {
			v->kind = words[i].kind;
			s->p += strlen(words[i].word);
			return v;
		}
	v->kind = NUMBER;
	v->text = s->p;
	s->p += strspn(s->p, "+-0123456789.eE");
	if (s->p == v->text) die("a request that is not JSON");
	return v;
}

static node *item(const node *v, int i) {
	node *at = v ? v->first : NULL;
	while (at && i-- > 0) at = at->next;
	return at;
}

static node *get(const node *v, const char *key) {
	node *at = v && v->kind == OBJECT ? v->first : NULL;
	while (at && strcmp(at->key, key)) at = at->next;
	return at;
}

static int64_t whole(const node *v) { return v && v->kind == NUMBER ? strtoll(v->text, NULL, 10) : 0; }
static int is_whole(const node *v) {
	return v && v->kind == NUMBER && !strchr(".eE", v->text[strspn(v->text, "+-0123456789")]);
}
static int is_text(const node *v, const char *text) { return v && v->kind == STRING && !strcmp(v->text, text); }
static int tagged(const node *v, const char *tag) { return v && v->kind == ARRAY && is_text(v->first, tag); }

/* dtypes */
static const struct { const char *name; size_t size; } dtypes[] = {
	{"bool", 1}, {"uint8", 1}, {"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8},
	{"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16},
};

size_t plumb_size(int32_t t) { return dtypes[t].size; }
const char *plumb_name(int32_t t) { return dtypes[t].name; }
int plumb_is_int(int32_t t) { return t >= PLUMB_UINT8 && t <= PLUMB_INT64; }
int plumb_is_float(int32_t t) { return t >= PLUMB_FLOAT16 && t <= PLUMB_FLOAT64; }
int plumb_is_complex(int32_t t) { return t >= PLUMB_COMPLEX64; }

static int32_t named(const node *v) {
	for (int32_t t = 0; t <= PLUMB_COMPLEX128; t++)
		if (is_text(v, dtypes[t].name)) return t;
	return -1;
}

/* A float of 16 bits has 5 or 8 bits of exponent. */
static double from16(uint16_t bits, int exponent) {
	int fraction = 15 - exponent, bias = (1 << (exponent - 1)) - 1;
	int e = bits >> fraction & ((1 << exponent) - 1), m = bits & ((1 << fraction) - 1);
	double v = e == (1 << exponent) - 1 ? (m ? NAN : INFINITY) : e ? ldexp(m + (1 << fraction), e - bias - fraction) : ldexp(m, 1 - bias - fraction);
	return bits >> 15 ? -v : v;
}

static uint16_t to16(double v, int exponent) {
	int fraction = 15 - exponent, bias = (1 << (exponent - 1)) - 1, e;
	uint16_t sign = (uint16_t)(signbit(v) ? 0x8000 : 0), infinite = (uint16_t)(((1 << exponent) - 1) << fraction);
	if (isnan(v)) return (uint16_t)(infinite | 1 << (fraction - 1) | sign);
	if (isinf(v)) return sign | infinite;
	if (v == 0) return sign;
	frexp(v, &e);
	if (e < 2 - bias) e = 2 - bias; /* subnormal */
	int64_t units = (int64_t)nearbyint(ldexp(fabs(v), fraction + 1 - e)); /* to even */
	int64_t bits = units + ((int64_t)(e - 2 + bias) << fraction); /* a carry is the next exponent */
	return sign | (bits >= infinite ? infinite : (uint16_t)bits);
}

#define REAL(OF) \
	OF(PLUMB_BOOL, uint8_t) OF(PLUMB_UINT8, uint8_t) OF(PLUMB_INT8, int8_t) OF(PLUMB_INT16, int16_t) OF(PLUMB_INT32, int32_t) \
	OF(PLUMB_INT64, int64_t) OF(PLUMB_FLOAT32, float) OF(PLUMB_FLOAT64, double)

double plumb_get(const plumb_tensor *t, int64_t i) {
	if (!t->data) return NAN;
	switch (t->dtype) {
#define OF(D, T) case D: return (double)((const T *)t->data)[i];
	REAL(OF)
#undef OF
	case PLUMB_FLOAT16: return from16(((const uint16_t *)t->data)[i], 5);
	case PLUMB_BFLOAT16: return from16(((const uint16_t *)t->data)[i], 8);
	}
	return NAN;
}

void plumb_set(const plumb_tensor *t, int64_t i, double v) {
	if (!t->data) return;
	if (t->dtype == PLUMB_FLOAT64) ((double *)t->data)[i] = v;
	else if (t->dtype == PLUMB_FLOAT32) ((float *)t->data)[i] = (float)v;
	else if (t->dtype == PLUMB_FLOAT16) ((uint16_t *)t->data)[i] = to16(v, 5);
	else if (t->dtype == PLUMB_BFLOAT16) ((uint16_t *)t->data)[i] = to16(v, 8);
	else if (t->dtype == PLUMB_BOOL) ((uint8_t *)t->data)[i] = v != 0;
	else if (t->dtype == PLUMB_COMPLEX64) ((float *)t->data)[2 * i] = (float)v, ((float *)t->data)[2 * i + 1] = 0;
	else if (t->dtype == PLUMB_COMPLEX128) ((double *)t->data)[2 * i] = v, ((double *)t->data)[2 * i + 1] = 0;
	else plumb_set_int(t, i, v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN);
}

int64_t plumb_get_int(const plumb_tensor *t, int64_t i) {
	if (!t->data) return 0;
	switch (t->dtype) {
#define OF(D, T) case D: return (int64_t)((const T *)t->data)[i];
	OF(PLUMB_BOOL, uint8_t) OF(PLUMB_UINT8, uint8_t) OF(PLUMB_INT8, int8_t) OF(PLUMB_INT16, int16_t) OF(PLUMB_INT32, int32_t) OF(PLUMB_INT64, int64_t)
#undef OF
	}
	double v = plumb_get(t, i);
	return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

void plumb_set_int(const plumb_tensor *t, int64_t i, int64_t v) {
	if (!t->data) return;
	switch (t->dtype) {
#define OF(D, T) case D: ((T *)t->data)[i] = (T)v; return;
	OF(PLUMB_UINT8, uint8_t) OF(PLUMB_INT8, int8_t) OF(PLUMB_INT16, int16_t) OF(PLUMB_INT32, int32_t) OF(PLUMB_INT64, int64_t)
	OF(PLUMB_FLOAT32, float) OF(PLUMB_FLOAT64, double)
#undef OF
	case PLUMB_BOOL: ((uint8_t *)t->data)[i] = v != 0; return;
	}
	plumb_set(t, i, (double)v);
}

/* The values of a case. */
typedef enum { A_TENSOR, AN_INT, A_FLOAT, A_BOOL, A_TUPLE } cell_kind;

typedef struct cell {
	cell_kind kind;
	plumb_tensor t;
	int64_t offset; /* in the region, or -1: t.data */
	int64_t n;      /* of an int or bool; of elements of a tuple */
	double f;
	struct cell *elements, *owner; /* owner: whose memory it is */
	int shared;                    /* with a view, of which the kit has a copy */
} cell;

typedef struct { const char *status, *name; char message[TEXT]; } failure;

struct plumb_call {
	const plumb_subject *subject;
	block *memory; /* of the case */
	cell *values;
	int known;    /* how many values there are */
	node *args, *kwargs;
	int read;     /* a function reads the arguments */
	cell *results;
	int made, room, tuple;
	failure failed;
};

static void fail(plumb_call *c, const char *status, const char *name, const char *format, va_list list) {
	if (c->failed.status) return;
	c->failed.status = status;
	c->failed.name = name;
	vsnprintf(c->failed.message, TEXT, format, list);
}

int plumb_failed(const plumb_call *c) { return c->failed.status != NULL; }

#define FAIL(STATUS, NAME) \
	va_list list; \
	va_start(list, format); \
	fail(c, STATUS, NAME, format, list); \
	va_end(list)

void plumb_unsupported(plumb_call *c, const char *format, ...) { FAIL("unsupported", "NotImplementedError"); }
void plumb_raise(plumb_call *c, const char *exception, const char *format, ...) { FAIL("raised", exception); }
static void no_memory(plumb_call *c, const char *format, ...) { FAIL("oom", "MemoryError"); }

void *plumb_scratch(plumb_call *c, size_t bytes) {
	void *p = plumb_failed(c) ? NULL : take(&c->memory, bytes);
	if (!p) no_memory(c, "no memory for %zu bytes", bytes);
	return p;
}

/* count sets the count and contiguous strides of a shape; 0 where it is none. */
static int shaped(plumb_tensor *t, int32_t dtype, int32_t rank, const int64_t *shape) {
	memset(t, 0, sizeof *t);
	if (dtype < 0 || dtype > PLUMB_COMPLEX128 || rank < 0 || rank > PLUMB_RANK) return 0;
	int64_t product = 1, stride = 1;
	for (int i = rank - 1; i >= 0; i--) {
		int64_t n = shape[i];
		if (n < 0 || (n > 0 && stride > MOST_BYTES / n)) return 0;
		t->shape[i] = n;
		t->strides[i] = stride;
		stride *= n ? n : 1;
		product *= n;
	}
	if (stride > MOST_BYTES / (int64_t)plumb_size(dtype)) return 0;
	t->count = product;
	t->dtype = dtype;
	t->rank = rank;
	return 1;
}

static plumb_tensor nothing(void) {
	plumb_tensor t;
	memset(&t, 0, sizeof t);
	return t;
}

plumb_tensor plumb_new(plumb_call *c, int32_t dtype, int32_t rank, const int64_t *shape) {
	plumb_tensor t;
	if (plumb_failed(c)) return nothing();
	if (!shaped(&t, dtype, rank, shape)) {
		plumb_raise(c, "RuntimeError", "there is no tensor of such a shape");
		return nothing();
	}
	t.data = plumb_scratch(c, (size_t)t.count * plumb_size(dtype));
	return t.data ? t : nothing();
}

/* each walks over the elements of a tensor in order: at is where the i-th lies. */
typedef struct { int64_t index[PLUMB_RANK], at; } walk;

static void step(walk *w, const plumb_tensor *t) {
	for (int d = t->rank - 1; d >= 0; d--) {
		w->at += t->strides[d];
		if (++w->index[d] < t->shape[d]) return;
		w->at -= t->strides[d] * t->shape[d];
		w->index[d] = 0;
	}
}

static int contiguous(const plumb_tensor *t) {
	int64_t stride = 1;
	for (int d = t->rank - 1; d >= 0; d--) {
		if (t->shape[d] != 1 && t->strides[d] != stride) return 0;
		stride *= t->shape[d];
	}
	return 1;
}

static plumb_tensor packed(plumb_call *c, plumb_tensor t) {
	if (t.count == 0 || contiguous(&t)) return t;
	plumb_tensor out = plumb_new(c, t.dtype, t.rank, t.shape);
	out.number = t.number;
	size_t size = plumb_size(t.dtype);
	walk w;
	memset(&w, 0, sizeof w);
	for (int64_t i = 0; i < out.count; i++, step(&w, &t)) memcpy((char *)out.data + (size_t)i * size, (char *)t.data + (size_t)w.at * size, size);
	return out;
}

/* The region that is shared with Plumb. */
static char *region;
static size_t mapped;

static int map(size_t size) {
	struct stat s;
	if (size > (size_t)MOST_BYTES || fstat(REGION, &s)) return 0;
	if ((size_t)s.st_size < size && ftruncate(REGION, (off_t)size)) return 0;
	size_t now = (size_t)s.st_size < size ? size : (size_t)s.st_size;
	void *m = mmap(NULL, now, PROT_READ | PROT_WRITE, MAP_SHARED, REGION, 0);
	if (m == MAP_FAILED) return 0;
	if (region) munmap(region, mapped);
	region = (char *)m;
	mapped = now;
	return 1;
}

static plumb_tensor tensor_of(plumb_call *c, const cell *v) {
	plumb_tensor t = v->t;
	if (plumb_failed(c)) return nothing();
	if (v->offset >= 0) t.data = region + v->offset;
	return t;
}

/* input reads [dtype, offset, shape, strides, …] and sees that it is inside. */
static int input(cell *v, const node *n) {
	int64_t shape[PLUMB_RANK], extent = 1;
	int32_t dtype = named(item(n, 0)), rank = 0;
	const node *strides = item(n, 3);
	for (node *d = item(n, 2) ? item(n, 2)->first : NULL; d; d = d->next) {
		if (rank == PLUMB_RANK) return 0;
		shape[rank++] = whole(d);
	}
	if (!shaped(&v->t, dtype, rank, shape)) return 0;
	for (int d = 0; d < rank; d++) {
		if (strides && strides->kind == ARRAY) v->t.strides[d] = whole(item(strides, d));
		int64_t stride = v->t.strides[d], most = shape[d] - 1;
		if (stride < 0 || (most > 0 && stride > MOST_BYTES / most)) return 0;
		if (most > 0 && (extent += stride * most) > MOST_BYTES) return 0;
	}
	v->kind = A_TENSOR;
	v->offset = whole(item(n, 1));
	v->owner = v;
	int64_t bytes = v->t.count ? extent * (int64_t)plumb_size(dtype) : 0;
	return v->offset >= 0 && v->offset % ALIGN == 0 && bytes <= (int64_t)mapped && v->offset <= (int64_t)mapped - bytes;
}

/* Arguments. */
static node *argument(plumb_call *c, int position, const char *name) {
	node *v = item(c->args, position);
	if (!v) v = get(c->kwargs, name);
	if (v) v->read = 1;
	return v;
}

static node *needed(plumb_call *c, int position, const char *name) {
	node *v = plumb_failed(c) ? NULL : argument(c, position, name);
	if (!v) plumb_unsupported(c, "a call without the argument %s", name);
	return v;
}

int plumb_has(plumb_call *c, int position, const char *name) {
	node *v = plumb_failed(c) ? NULL : argument(c, position, name);
	return v && v->kind != NONE;
}

/* referred is the value that an argument refers to, or NULL. */
static cell *referred(plumb_call *c, const node *v) {
	if (!tagged(v, "r")) return NULL;
	int64_t i = whole(item(v, 1));
	if (i < 0 || i >= c->known) die("a request that refers to no value");
	return &c->values[i];
}

static void unlike(plumb_call *c, const char *name, const char *want) { plumb_unsupported(c, "the argument %s is no %s", name, want); }

static plumb_tensor dense(plumb_call *c, const node *v, const char *name) {
	cell *r = v ? referred(c, v) : NULL;
	if (r && r->kind == A_TENSOR) return tensor_of(c, r);
	if (!plumb_failed(c)) unlike(c, name, "tensor");
	return nothing();
}

plumb_tensor plumb_strided_arg(plumb_call *c, int position, const char *name) { return dense(c, needed(c, position, name), name); }
plumb_tensor plumb_tensor_arg(plumb_call *c, int position, const char *name) { return packed(c, plumb_strided_arg(c, position, name)); }

/* A number of an argument, or of the value that it refers to. */
static int number(plumb_call *c, const node *v, cell *out) {
	cell *r = referred(c, v);
	memset(out, 0, sizeof *out);
	out->offset = -1;
	if (r) {
		*out = *r;
		return r->kind == AN_INT || r->kind == A_FLOAT || r->kind == A_BOOL;
	}
	out->kind = v->kind == TRUE || v->kind == FALSE ? A_BOOL : is_whole(v) ? AN_INT : A_FLOAT;
	out->n = v->kind == TRUE ? 1 : whole(v);
	if (tagged(v, "f")) {
		out->f = is_text(item(v, 1), "nan") ? NAN : is_text(item(v, 1), "inf") ? INFINITY : -INFINITY;
		return 1;
	}
	out->f = v->kind == NUMBER ? strtod(v->text, NULL) : (double)out->n;
	return v->kind == NUMBER || out->kind == A_BOOL;
}

plumb_tensor plumb_operand(plumb_call *c, int position, const char *name) {
	node *v = needed(c, position, name);
	cell n;
	if (!v || !number(c, v, &n)) return packed(c, dense(c, v, name));
	plumb_tensor t = plumb_new(c, n.kind == A_FLOAT ? PLUMB_FLOAT64 : n.kind == A_BOOL ? PLUMB_BOOL : PLUMB_INT64, 0, NULL);
	t.number = 1;
	if (plumb_failed(c)) return t;
	if (n.kind == A_FLOAT) plumb_set(&t, 0, n.f);
	else plumb_set_int(&t, 0, n.n);
	return t;
}

int64_t plumb_int(plumb_call *c, int position, const char *name, int64_t otherwise) {
	node *v = otherwise == PLUMB_REQUIRED ? needed(c, position, name) : plumb_has(c, position, name) ? argument(c, position, name) : NULL;
	cell n;
	if (!v) return otherwise == PLUMB_REQUIRED ? 0 : otherwise;
	if (!number(c, v, &n) || n.kind != AN_INT) unlike(c, name, "whole number");
	return n.n;
}

double plumb_float(plumb_call *c, int position, const char *name, double otherwise) {
	cell n;
	if (!plumb_has(c, position, name)) return otherwise;
	if (!number(c, argument(c, position, name), &n)) unlike(c, name, "number");
	return n.kind == A_FLOAT ? n.f : (double)n.n;
}

int plumb_bool(plumb_call *c, int position, const char *name, int otherwise) {
	cell n;
	if (!plumb_has(c, position, name)) return otherwise;
	if (!number(c, argument(c, position, name), &n) || n.kind != A_BOOL) unlike(c, name, "bool");
	return n.n != 0;
}

const char *plumb_text(plumb_call *c, int position, const char *name, const char *otherwise) {
	if (!plumb_has(c, position, name)) return otherwise;
	node *v = argument(c, position, name);
	if (v->kind == STRING) return v->text;
	unlike(c, name, "text");
	return otherwise;
}

int32_t plumb_dtype_arg(plumb_call *c, int position, const char *name, int32_t otherwise) {
	if (!plumb_has(c, position, name)) return otherwise;
	node *v = argument(c, position, name);
	int32_t t = tagged(v, "d") ? named(item(v, 1)) : -1;
	if (t < 0) unlike(c, name, "dtype");
	return t < 0 ? otherwise : t;
}

static node *listed(plumb_call *c, const node *v, const char *name) {
	if ((tagged(v, "l") || tagged(v, "u")) && item(v, 1)) return item(v, 1)->first;
	unlike(c, name, "list");
	return NULL;
}

/* numbers reads whole numbers from a node on; separate ones end with the first
 * argument that is none. */
static int numbers(plumb_call *c, node *v, const char *name, int64_t *into, int separate) {
	cell n;
	int many = 0;
	for (; v && !plumb_failed(c); v = v->next) {
		if (!number(c, v, &n) || n.kind != AN_INT) {
			if (!separate) unlike(c, name, "list of whole numbers");
			break;
		}
		if (many == PLUMB_RANK) plumb_unsupported(c, "the argument %s has more than %d numbers", name, PLUMB_RANK);
		else into[many++] = n.n;
		v->read = 1;
	}
	return plumb_failed(c) ? 0 : many;
}

int plumb_ints(plumb_call *c, int position, const char *name, int64_t *into) {
	cell n;
	node *v = needed(c, position, name);
	if (!v) return 0;
	if (!number(c, v, &n)) return numbers(c, listed(c, v, name), name, into, 0);
	into[0] = plumb_int(c, position, name, PLUMB_REQUIRED);
	return 1;
}

int plumb_sizes(plumb_call *c, int position, const char *name, int64_t *into) {
	cell n;
	node *v = item(c->args, position);
	return v && number(c, v, &n) ? numbers(c, v, name, into, 1) : plumb_ints(c, position, name, into);
}

int plumb_length(plumb_call *c, int position, const char *name) {
	node *v = needed(c, position, name);
	int n = 0;
	for (node *at = v ? listed(c, v, name) : NULL; at; at = at->next) n++;
	return n;
}

plumb_tensor plumb_element(plumb_call *c, int position, const char *name, int i) {
	node *v = needed(c, position, name), *at = v ? listed(c, v, name) : NULL;
	while (at && i-- > 0) at = at->next;
	return packed(c, dense(c, at, name));
}

/* Results. */
static cell *add(plumb_call *c, cell_kind kind) {
	static cell spare;
	if (plumb_failed(c)) return &spare;
	if (c->made == c->room) {
		int room = 2 * c->room + 4;
		cell *more = (cell *)plumb_scratch(c, (size_t)room * sizeof(cell));
		if (!more) return &spare;
		if (c->made) memcpy(more, c->results, (size_t)c->made * sizeof(cell));
		c->results = more;
		c->room = room;
	}
	cell *v = &c->results[c->made++];
	v->kind = kind;
	v->offset = -1;
	return v;
}

plumb_tensor plumb_result(plumb_call *c, int32_t dtype, int32_t rank, const int64_t *shape) {
	plumb_tensor t = plumb_new(c, dtype, rank, shape);
	if (!plumb_failed(c)) add(c, A_TENSOR)->t = t;
	return t;
}

void plumb_result_int(plumb_call *c, int64_t v) { add(c, AN_INT)->n = v; }
void plumb_result_float(plumb_call *c, double v) { add(c, A_FLOAT)->f = v; }
void plumb_result_bool(plumb_call *c, int v) { add(c, A_BOOL)->n = v != 0; }
void plumb_tuple(plumb_call *c) { c->tuple = 1; }

/* What PyTorch does with dtypes and shapes. */
int plumb_dim(plumb_call *c, int64_t dim, int rank) {
	int64_t n = rank ? rank : 1;
	if (dim >= -n && dim < n) return (int)(dim < 0 ? dim + n : dim);
	plumb_raise(c, "IndexError", "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", (long long)-n, (long long)(n - 1), (long long)dim);
	return 0;
}

static int category(int32_t t) { return t == PLUMB_BOOL ? 0 : plumb_is_int(t) ? 1 : plumb_is_float(t) ? 2 : 3; }

static int32_t wider(int32_t a, int32_t b) {
	int32_t low = a < b ? a : b, high = a < b ? b : a;
	if (low == high || category(low) < category(high)) return low == PLUMB_FLOAT64 ? PLUMB_COMPLEX128 : high;
	if (low == PLUMB_UINT8 && high == PLUMB_INT8) return PLUMB_INT16;
	return low == PLUMB_FLOAT16 && high == PLUMB_BFLOAT16 ? PLUMB_FLOAT32 : high;
}

static int32_t own_dtype(plumb_tensor t) { return t.number && t.dtype == PLUMB_FLOAT64 ? PLUMB_FLOAT32 : t.dtype; }
static int weight(plumb_tensor t) { return t.number ? 0 : t.rank ? 2 : 1; }

int32_t plumb_promoted(plumb_tensor a, plumb_tensor b) {
	int32_t s = own_dtype(a), t = own_dtype(b);
	if (weight(a) == weight(b)) return wider(s, t);
	if (weight(a) < weight(b)) return plumb_promoted(b, a);
	return category(t) > category(s) ? wider(s, t) : s;
}

plumb_tensor plumb_cast(plumb_call *c, plumb_tensor t, int32_t dtype) {
	t = packed(c, t);
	if (t.dtype == dtype) return t;
	if (plumb_is_complex(dtype) || plumb_is_complex(t.dtype)) plumb_unsupported(c, "%s becomes no %s here", plumb_name(t.dtype), plumb_name(dtype));
	plumb_tensor out = plumb_new(c, dtype, t.rank, t.shape);
	out.number = t.number;
	for (int64_t i = 0; i < out.count; i++) {
		if (plumb_is_float(t.dtype)) plumb_set(&out, i, plumb_get(&t, i));
		else plumb_set_int(&out, i, plumb_get_int(&t, i));
	}
	return out;
}

/* over gives a tensor the shape of a larger one, by strides of 0. */
static int over(plumb_tensor *t, int32_t rank, const int64_t *shape) {
	plumb_tensor wide;
	if (t->rank > rank || !shaped(&wide, t->dtype, rank, shape)) return 0;
	for (int d = 0; d < rank; d++) {
		int from = d - (rank - t->rank);
		int64_t size = from < 0 ? 1 : t->shape[from];
		if (size != 1 && size != shape[d]) return 0;
		wide.strides[d] = size == 1 ? 0 : t->strides[from];
	}
	wide.data = t->data;
	wide.number = t->number;
	*t = wide;
	return 1;
}

plumb_tensor plumb_expand(plumb_call *c, plumb_tensor t, int32_t rank, const int64_t *shape) {
	if (!plumb_failed(c) && !over(&t, rank, shape)) plumb_raise(c, "RuntimeError", "a tensor cannot be expanded to this shape");
	return plumb_failed(c) ? nothing() : packed(c, t);
}

void plumb_pair(plumb_call *c, plumb_tensor *a, plumb_tensor *b) {
	int32_t dtype = plumb_promoted(*a, *b), rank = a->rank > b->rank ? a->rank : b->rank;
	int64_t shape[PLUMB_RANK] = {0};
	for (int d = 0; d < rank; d++) {
		int i = d - (rank - a->rank), j = d - (rank - b->rank);
		int64_t n = i < 0 ? 1 : a->shape[i], m = j < 0 ? 1 : b->shape[j];
		shape[d] = n == 1 ? m : n;
		if (n != 1 && m != 1 && n != m) plumb_raise(c, "RuntimeError", "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d", (long long)n, (long long)m, d);
	}
	*a = plumb_expand(c, plumb_cast(c, *a, dtype), rank, shape);
	*b = plumb_expand(c, plumb_cast(c, *b, dtype), rank, shape);
}

/* Calls. */
static const plumb_function *row(const plumb_subject *s, const char *space, const char *name, size_t n) {
	for (const plumb_function *f = s->functions; f->target; f++)
		if (!strncmp(f->target, space, strlen(space)) && !strncmp(f->target + strlen(space), name, n) && !f->target[strlen(space) + n]) return f;
	return NULL;
}

/* look finds the row of a target; in place where "Tensor.abs_" is that of abs. */
static const plumb_function *look(const plumb_subject *s, const char *target, int *in_place) {
	static const char *const spaces[] = {"Tensor.", "torch.", "torch.nn.functional.", "torch.special."};
	size_t n = strlen(target);
	const plumb_function *f = row(s, "", target, n);
	*in_place = !f && n > 1 && target[n - 1] == '_' && target[n - 2] != '_';
	if (*in_place) f = row(s, "", target, n - 1);
	if (f || strncmp(target, "Tensor.", 7)) return f;
	target += 7;
	n -= 7;
	for (int i = 0; i < 4 && !f; i++) f = row(s, spaces[i], target, n - (size_t)*in_place);
	return f;
}

static void unread(plumb_call *c, const node *v, int i) {
	for (; v; v = v->next, i++) {
		if (v->read) continue;
		if (v->key) plumb_unsupported(c, "the argument %s", v->key);
		else plumb_unsupported(c, "an argument at position %d", i);
	}
}

/* place writes a result into the first argument. */
static void place(plumb_call *c, cell *self, cell *out) {
	plumb_tensor to = tensor_of(c, self), from = out->t;
	if (self->owner->shared) plumb_unsupported(c, "a change in place of memory that another value may share");
	int same = to.rank == from.rank && !memcmp(to.shape, from.shape, sizeof to.shape);
	if (!same) plumb_raise(c, "RuntimeError", "output with this shape doesn't match the broadcast shape");
	if (category(from.dtype) > category(to.dtype) && from.dtype != PLUMB_BOOL)
		plumb_raise(c, "RuntimeError", "result type %s can't be cast to the desired output type %s", plumb_name(from.dtype), plumb_name(to.dtype));
	for (int d = 0; d < to.rank; d++)
		if (to.strides[d] == 0 && to.shape[d] > 1) plumb_unsupported(c, "a change in place of elements that share memory");
	from = plumb_cast(c, from, to.dtype);
	size_t size = plumb_size(to.dtype);
	walk w;
	memset(&w, 0, sizeof w);
	for (int64_t i = 0; i < from.count && !plumb_failed(c); i++, step(&w, &to)) memcpy((char *)to.data + (size_t)w.at * size, (char *)from.data + (size_t)i * size, size);
	*out = *self;
}

/* cut applies one index to a dimension of a tensor that is read from it on, and
 * returns how many dimensions the result has then. */
static int cut(plumb_call *c, const node *v, plumb_tensor *from, int *at, plumb_tensor *to, int64_t *offset) {
	cell n;
	if (v->kind == NONE && to->rank < PLUMB_RANK) {
		to->shape[to->rank++] = 1;
		return 1;
	}
	if (*at >= from->rank || to->rank >= PLUMB_RANK) return 0;
	int64_t size = from->shape[*at], stride = from->strides[(*at)++];
	if (tagged(v, "s")) {
		int64_t part[3] = {0, size, 1}; /* start, stop, step */
		for (int i = 0; i < 3; i++) {
			const node *p = item(v, i + 1);
			if (!p || p->kind == NONE) continue;
			if (!number(c, p, &n) || n.kind != AN_INT || (i == 2 && n.n < 1)) return 0;
			part[i] = i == 2 ? n.n : n.n < 0 ? (n.n < -size ? 0 : n.n + size) : n.n > size ? size : n.n;
		}
		if (part[1] > part[0]) *offset += part[0] * stride;
		to->shape[to->rank] = part[1] > part[0] ? (part[1] - part[0] - 1) / part[2] + 1 : 0;
		to->strides[to->rank++] = part[2] < MOST_BYTES ? stride * part[2] : stride;
		return 1;
	}
	if (v->kind == ARRAY || !number(c, v, &n) || n.kind != AN_INT) return 0;
	if (n.n < -size || n.n >= size) {
		plumb_raise(c, "IndexError", "index %lld is out of bounds for dimension with size %lld", (long long)n.n, (long long)size);
		return 1;
	}
	*offset += (n.n < 0 ? n.n + size : n.n) * stride;
	return 1;
}

/* viewed is operator.getitem of a tensor by numbers, slices, None and an
 * ellipsis: a view of its memory. */
static void viewed(plumb_call *c, cell *from, node *index, cell *into) {
	plumb_tensor x = from->t, y = nothing();
	const node *first = tagged(index, "u") || tagged(index, "l") ? (item(index, 1) ? item(index, 1)->first : NULL) : NULL, *one = first ? first : index;
	int at = 0, left = 0;
	int64_t offset = 0;
	for (const node *v = one; v; v = first ? v->next : NULL) left += v->kind != NONE && !tagged(v, "e");
	for (const node *v = one; v && !plumb_failed(c); v = first ? v->next : NULL) {
		if (tagged(v, "e"))
			for (; at < x.rank - left && y.rank < PLUMB_RANK; at++, y.rank++) {
				y.shape[y.rank] = x.shape[at];
				y.strides[y.rank] = x.strides[at];
			}
		else if (tagged(index, "l") || !cut(c, v, &x, &at, &y, &offset)) plumb_unsupported(c, "an index of such a kind");
		left -= v->kind != NONE && !tagged(v, "e");
	}
	for (; at < x.rank && y.rank < PLUMB_RANK; at++, y.rank++) {
		y.shape[y.rank] = x.shape[at];
		y.strides[y.rank] = x.strides[at];
	}
	y.count = 1;
	for (int d = 0; d < y.rank; d++) y.count *= y.shape[d];
	y.dtype = x.dtype;
	*into = *from;
	into->t = y;
	int64_t bytes = y.count ? offset * (int64_t)plumb_size(y.dtype) : 0;
	if (into->offset >= 0) into->offset += bytes;
	else into->t.data = (char *)x.data + bytes;
}

/* taken is operator.getitem. */
static int taken(plumb_call *c, const char *target, cell *into) {
	cell *from = referred(c, item(c->args, 0));
	if (strcmp(target, "operator.getitem") || !from || (from->kind != A_TUPLE && from->kind != A_TENSOR) || !item(c->args, 1)) return 0;
	if (from->kind == A_TENSOR) {
		viewed(c, from, item(c->args, 1), into);
		return 1;
	}
	int64_t i = plumb_int(c, 1, "b", PLUMB_REQUIRED);
	if (i < 0) i += from->n;
	if (i < 0 || i >= from->n) plumb_raise(c, "IndexError", "tuple index out of range");
	else *into = from->elements[i];
	return 1;
}

static void scopes(plumb_call *c, const node *list) {
	for (const node *s = list ? list->first : NULL; s; s = s->next) {
		const node *name = item(s, 0);
		if (!name || name->kind != STRING || (!strstr(name->text, "no_grad") && !strstr(name->text, "enable_grad") && !strstr(name->text, "set_grad_enabled")))
			plumb_unsupported(c, "the scope %s", name && name->kind == STRING ? name->text : "of a call");
	}
}

static void call(plumb_call *c, const node *n, cell *into) {
	const node *target = item(n, 0);
	int in_place;
	if (!target || target->kind != STRING) die("a request with a call of nothing");
	c->args = item(n, 1);
	c->kwargs = item(n, 2);
	c->results = NULL;
	c->made = c->room = c->tuple = 0;
	scopes(c, item(n, 3));
	if (plumb_failed(c) || taken(c, target->text, into)) return;
	const plumb_function *f = look(c->subject, target->text, &in_place);
	if (!f || (in_place && f->flags & PLUMB_VIEW)) {
		plumb_unsupported(c, "there is no %s", target->text);
		return;
	}
	cell *self = referred(c, item(c->args, 0) ? item(c->args, 0) : get(c->kwargs, "input"));
	f->function(c);
	unread(c, c->args ? c->args->first : NULL, 0);
	unread(c, c->kwargs ? c->kwargs->first : NULL, 0);
	if (plumb_failed(c)) return;
	if (c->made == 0 && !c->tuple) plumb_unsupported(c, "%s, which gave no result", target->text);
	for (int i = 0; i < c->made; i++) c->results[i].owner = &c->results[i];
	if (in_place && (c->made != 1 || c->results[0].kind != A_TENSOR || !self || self->kind != A_TENSOR)) plumb_unsupported(c, "%s in place", target->text);
	if (in_place && !plumb_failed(c)) place(c, self, c->results);
	if (plumb_failed(c)) return;
	for (int i = 0; i < c->made && f->flags & PLUMB_VIEW; i++) {
		c->results[i].owner->shared = 1;
		if (self && self->owner) self->owner->shared = 1;
	}
	if (c->made == 1 && !c->tuple) {
		*into = c->results[0];
		return;
	}
	into->kind = A_TUPLE;
	into->elements = c->results;
	into->n = c->made;
}

/* The reply. */
static char *reply;
static size_t used, held, placed; /* placed: the end of the results in the region */

static void say(const char *format, ...) {
	for (;;) {
		va_list list;
		va_start(list, format);
		int n = vsnprintf(reply ? reply + used : NULL, held - used, format, list);
		va_end(list);
		if (n < 0) die("a reply that cannot be written");
		if (used + (size_t)n < held) {
			used += (size_t)n;
			return;
		}
		held = 2 * held + (size_t)n + TEXT;
		if (held > 2 * MOST_FRAME || !(reply = (char *)realloc(reply, held))) die("a reply that is too large");
	}
}

static void quote(const char *text) {
	say("\"");
	for (; *text; text++) {
		unsigned char ch = (unsigned char)*text;
		if (ch < ' ' || ch > '~' || ch == '"' || ch == '\\') say("\\u%04x", ch);
		else say("%c", ch);
	}
	say("\"");
}

static void say_float(double v) {
	if (isfinite(v)) say("%.17g%s", v, v == floor(v) && fabs(v) < 1e16 ? ".0" : "");
	else say("[\"f\",\"%s\"]", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static int say_tensor(plumb_call *c, const cell *v) {
	plumb_tensor t = packed(c, tensor_of(c, v));
	size_t bytes = (size_t)t.count * plumb_size(t.dtype), at = (placed + ALIGN - 1) / ALIGN * ALIGN;
	int inside = v->offset >= 0 && t.data == region + v->offset; /* which may move */
	if (plumb_failed(c)) return 0;
	if (at + bytes > mapped && !map(at + bytes)) {
		no_memory(c, "no shared memory for %zu bytes", bytes);
		return 0;
	}
	memcpy(region + at, inside ? region + v->offset : (char *)t.data, bytes);
	placed = at + bytes;
	say("[\"t\",\"%s\",%zu,[", plumb_name(t.dtype), at);
	for (int d = 0; d < t.rank; d++) say(d ? ",%lld" : "%lld", (long long)t.shape[d]);
	say("],null,false]");
	return 1;
}

static int say_value(plumb_call *c, const cell *v) {
	switch (v->kind) {
	case A_TENSOR: return say_tensor(c, v);
	case AN_INT: say("%lld", (long long)v->n); break;
	case A_BOOL: say(v->n ? "true" : "false"); break;
	case A_FLOAT: say_float(v->f); break;
	case A_TUPLE:
		say("[\"u\",[");
		for (int64_t i = 0; i < v->n; i++) {
			if (i) say(",");
			if (!say_value(c, &v->elements[i])) return 0;
		}
		say("]]");
	}
	return 1;
}

static int length(const node *v) {
	int n = 0;
	for (node *at = v ? v->first : NULL; at; at = at->next) n++;
	return n;
}

static void inputs(plumb_call *c, const node *list) {
	for (node *n = list ? list->first : NULL; n; n = n->next)
		if (!input(&c->values[c->known++], n)) plumb_unsupported(c, "an input of such a dtype or shape");
}

/* answer runs a case and says what each call gave, as it was right after it. */
static void answer(const plumb_subject *subject, const node *n, uint32_t number) {
	plumb_call c;
	memset(&c, 0, sizeof c);
	c.subject = subject;
	const node *calls = get(n, "calls");
	uint32_t at = 0;
	struct timespec start, end;
	c.values = (cell *)plumb_scratch(&c, (size_t)(length(get(n, "inputs")) + length(calls) + 1) * sizeof(cell));
	if (c.values) inputs(&c, get(n, "inputs"));
	clock_gettime(CLOCK_MONOTONIC, &start);
	say("{\"values\":[");
	for (const node *one = calls ? calls->first : NULL; one && !plumb_failed(&c); one = one->next, at++) {
		uint32_t mark[2] = {number, at};
		memcpy(region, mark, sizeof mark);
		cell *v = &c.values[c.known];
		call(&c, one, v);
		size_t before = used;
		if (!plumb_failed(&c) && at) say(",");
		if (!plumb_failed(&c) && say_value(&c, v)) c.known++;
		else {
			used = before;
			break;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	say("],\"elapsed\":%lld", (long long)(end.tv_sec - start.tv_sec) * 1000000000 + (end.tv_nsec - start.tv_nsec));
	say(",\"status\":\"%s\"", plumb_failed(&c) ? c.failed.status : "ok");
	if (plumb_failed(&c)) {
		say(",\"call\":%u,\"class\":", at);
		quote(c.failed.name);
		say(",\"message\":");
		quote(c.failed.message);
	}
	say("}");
	give_back(&c.memory);
}

static void respond(const plumb_subject *subject, const node *request) {
	used = 0;
	say("....");
	if (get(request, "signatures")) {
		say("{\"signatures\":null}");
	} else if (get(request, "opinfo")) {
		say("{\"opinfo\":{\"error\":\"this worker has no sample inputs\"}}");
	} else {
		int64_t size = whole(get(request, "size")), out = whole(get(request, "out"));
		if (size < 0 || out < 0 || ((size_t)size > mapped && !map((size_t)size))) die("no shared memory of the size that is asked for");
		placed = (size_t)out;
		say("{\"id\":%lld,\"cases\":[", (long long)whole(get(request, "id")));
		uint32_t n = 0;
		for (const node *one = get(request, "cases") ? get(request, "cases")->first : NULL; one; one = one->next) {
			if (n++) say(",");
			answer(subject, one, n);
		}
		say("],\"size\":%zu,\"cpu\":%.6f}", mapped, (double)clock() / CLOCKS_PER_SEC);
	}
	if (used - 4 > MOST_FRAME) die("a reply of more than 64 MiB");
	for (int i = 0; i < 4; i++) reply[i] = (char)((used - 4) >> 8 * i & 0xff);
	for (size_t done = 0; done < used;) {
		ssize_t k = write(REPLIES, reply + done, used - done);
		if (k <= 0) die("nobody reads the replies");
		done += (size_t)k;
	}
}

/* fill reads n bytes; 0 at the end of the requests. */
static int fill(char *into, size_t n) {
	for (ssize_t k; n > 0; into += k, n -= (size_t)k)
		if ((k = read(REQUESTS, into, n)) <= 0) return 0;
	return 1;
}

int plumb_serve(const plumb_subject *subject) {
	unsigned char head[4];
	if (!map(ALIGN)) die("no shared memory");
	say("plumb-worker 1 {\"name\":");
	quote(subject->name);
	say(",\"version\":");
	quote(subject->version);
	say(",\"gradients\":false%s,\"devices\":[\"cpu\"],\"modes\":[\"eager\"],\"features\":{},\"cpu\":0}\n", subject->refuses ? "" : ",\"refusals\":false,\"forms\":false");
	if (write(REPLIES, reply, used) != (ssize_t)used) die("nobody reads the greeting");
	while (fill((char *)head, sizeof head)) {
		size_t size = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
		parser s;
		memset(&s, 0, sizeof s);
		if (size > MOST_FRAME) die("a request of more than 64 MiB");
		char *text = (char *)take(&s.memory, size + 1); /* with a 0 behind it */
		if (!text || !fill(text, size)) die("a request that ends too soon");
		s.p = text;
		s.end = text + size;
		const node *request = value(&s, 0);
		space(&s);
		if (s.p != s.end) die("a request with something behind it");
		respond(subject, request);
		give_back(&s.memory);
	}
	free(reply);
	return 0;
}
