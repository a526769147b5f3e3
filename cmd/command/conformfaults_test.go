package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// plantedInC are faults in the functions of examples/ownworker: what an
// expression is replaced by, and the function in which that shows.
var plantedInC = []struct{ function, from, to string }{
	{"relu", "relu_of(double x) { return x < 0 ? 0 : x; }", "relu_of(double x) { return x > 0 ? x : 0; }"}, // NaN
	{"relu6", "return x < 0 ? 0 : x > 6 ? 6 : x; }\nstatic int64_t", "return x < 0 ? 0 : x; }\nstatic int64_t"},
	{"leaky_relu", "(plumb_get(&x, i) > 0 ? 1 : slope)", "(plumb_get(&x, i) > 0 ? 1 : 0.01)"},
	{"hardtanh", "plumb_get(&x, i) > high ? high", "plumb_get(&x, i) > 1 ? 1"},
	{"add", "ARITHMETIC(add, a + b, (int64_t)((uint64_t)a + (uint64_t)b))", "ARITHMETIC(add, a == b ? a : a + b, (int64_t)((uint64_t)a + (uint64_t)b))"},
	{"sub", "ARITHMETIC(sub, a - b, (int64_t)((uint64_t)a - (uint64_t)b))", "ARITHMETIC(sub, fabs(a - b), (int64_t)((uint64_t)a - (uint64_t)b))"},
	{"mul", "ARITHMETIC(mul, a * b, (int64_t)((uint64_t)a * (uint64_t)b))", "ARITHMETIC(mul, fabs(a) * b, (int64_t)((uint64_t)a * (uint64_t)b))"},
	{"maximum", "ARITHMETIC(maximum, isnan(a) || a > b ? a : b, a > b ? a : b)", "ARITHMETIC(maximum, a > b ? a : b, a > b ? a : b)"},
	{"minimum", "ARITHMETIC(minimum, isnan(a) || a < b ? a : b, a < b ? a : b)", "ARITHMETIC(minimum, a < b ? a : b, a < b ? a : b)"},
	{"div", "plumb_set(&y, i, plumb_get(&a, i) / plumb_get(&b, i))", "plumb_set(&y, i, plumb_get(&b, i) ? plumb_get(&a, i) / plumb_get(&b, i) : 0)"},
	{"atan2", "atan2(plumb_get(&a, i), plumb_get(&b, i))", "atan(plumb_get(&a, i) / plumb_get(&b, i))"},
	{"eq", "COMPARISON(eq, ==)", "COMPARISON(eq, >=)"},
	{"lt", "COMPARISON(lt, <)", "COMPARISON(lt, <=)"},
	{"logical_not", "plumb_get(&x, i) == 0);", "!(plumb_get(&x, i) > 0));"},
	{"logical_and", "COMPARISON(logical_and, &&)", "COMPARISON(logical_and, ==)"},
	{"sum", "if (d != dim || keep)", "if (d != dim)"},
	{"mean", "sum / (double)a.n", "sum / (double)(a.n > 1 ? a.n - 1 : 1)"},
	{"max", "if (new_one > old ||", "if (new_one >= old ||"},
	{"min", "(isnan(new_one) && !isnan(old))", "0"},
	{"softmax", "int dim = plumb_dim(c, plumb_int(c, 1, \"dim\", PLUMB_REQUIRED), x.rank);\n\tint64_t n", "int dim = plumb_dim(c, plumb_int(c, 1, \"dim\", PLUMB_REQUIRED), x.rank);\n\tdim = x.rank ? x.rank - 1 : 0;\n\tint64_t n"},
	{"mse_loss", "strcmp(reduction, \"sum\") ? all", "strcmp(reduction, \"all\") ? all"},
	{"l1_loss", "v = power == 2 ? d * d : d;", "v = d < 0.5 ? 0 : d;"},
	{"mm", "k < inner; k++) {\n\t\t\tint64_t p", "k < inner - (inner > 2); k++) {\n\t\t\tint64_t p"},
	{"bmm", "(batch * rows + row) * inner + k", "row * inner + k"},
	{"transpose", "x.strides[e] = stride;", "x.strides[e] = 1;"},
	{"where", "(((uint8_t *)cond.data)[i] ? a : b)", "(((uint8_t *)cond.data)[0] ? a : b)"},
	{"cat", "at += part;", "at += n ? 0 : part;"},
	{"sigmoid", "return 1 / (1 + exp(-x)); }", "return x < -15 ? 0 : 1 / (1 + exp(-x)); }"},
	{"mish", "tanh(x > 30 ? x :", "tanh(x > 3 ? x :"},
	{"selu", "1.6732632423543772848170429916717 * expm1(x)", "1.68 * expm1(x)"},
	{"abs", "KEEP(do_abs, fabs, abs_int)", "KEEP(do_abs, fault_abs, abs_int)"}, // -0
	{"neg", "negative(double x) { return -x; }", "negative(double x) { return 0 - x; }"},
	{"sign", "isnan(x) ? 0 : (x > 0) - (x < 0)", "isnan(x) ? 0 : (x >= 0) - (x < 0)"},
	{"floor", "KEEP(do_floor, floor, same)", "KEEP(do_floor, trunc, same)"},
	{"round", "KEEP(do_round, nearbyint, same)", "KEEP(do_round, round, same)"},
	{"rsqrt", "return 1 / sqrt(x); }", "return x ? 1 / sqrt(x) : 0; }"},
	{"log1p", "MAP(do_log1p, log1p)", "MAP(do_log1p, fault_log1p)"},
	{"expm1", "MAP(do_expm1, expm1)", "MAP(do_expm1, fault_expm1)"},
}

// faultySource is the worker in C with every fault in it; -DFAULT=n plants one.
func faultySource(t *testing.T) string {
	t.Helper()
	source := document(t, "examples/ownworker/worker.c")
	helpers := "#include <math.h>\n#ifndef FAULT\n#define FAULT -1\n#endif\n" +
		"static inline double fault_abs(double x) { return x < 0 ? -x : x; }\nstatic inline double fault_log1p(double x) { return log(1 + x); }\nstatic inline double fault_expm1(double x) { return exp(x) - 1; }\n"
	source = strings.Replace(source, "#include <math.h>\n", helpers, 1)
	for i, f := range plantedInC {
		if strings.Count(source, f.from) != 1 {
			t.Fatalf("fault %d, in %s: the worker has %d times\n%s", i, f.function, strings.Count(source, f.from), f.from)
		}
		source = strings.Replace(source, f.from, fmt.Sprintf("\n#if FAULT == %d\n%s\n#else\n%s\n#endif\n", i, f.to, f.from), 1)
	}
	return source
}

// TestConformFindsFaultsInC: the shipped conformance suite finds each of some
// forty faults of a worker in C, one in a function; TestConformOwnWorkerShipped
// has the worker without one.
//
// It takes every sixth of them; PLUMB_FAULTS=all takes all.
func TestConformFindsFaultsInC(t *testing.T) {
	slow(t)
	t.Parallel()
	source := faultySource(t)
	functions := map[string]bool{}
	step := 6
	if os.Getenv("PLUMB_FAULTS") == "all" {
		step = 1
	}
	for i := step - 1; i < len(plantedInC); i += step {
		f := plantedInC[i]
		functions[f.function] = true
		worker := workerInC(t, source, fmt.Sprintf("-DFAULT=%d", i))
		if out, _, err := conformed(t, "run", "--candidate", worker, "--findings", "none", "--known", "none", "--fname", f.function); exitCode(err) != exitFindings {
			t.Errorf("%s: %s: exit code %d, want %d: %v\n%s", f.function, f.to, exitCode(err), exitFindings, err, out[max(0, len(out)-600):])
		}
	}
	if step == 1 && len(functions) < 30 {
		t.Errorf("faults in %d functions only", len(functions))
	}
}
