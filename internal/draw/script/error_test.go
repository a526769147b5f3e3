package script

import (
	"errors"
	"testing"

	"plumb/internal/draw/choice"
)

func TestMistakesNamePositionAndCause(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"unknown keyword":               {body("x = random_tensor()\nreturn torch.nn.functional.leaky_relu(x, slope=0.1)"), `t.py:4:46: torch.nn.functional.leaky_relu: unknown keyword argument 'slope'; it takes input, negative_slope, inplace`},
		"unknown method keyword":        {body("x = random_tensor()\nreturn x.sum(dims=1)"), `t.py:4:18: Tensor.sum: unknown keyword argument 'dims'; it takes dim, keepdim`},
		"str for int":                   {body("m = torch.nn.Linear(3, 'four')\nreturn m(random_tensor())"), `t.py:3:28: torch.nn.Linear: argument 'out_features' must be int, not str`},
		"str for int by name":           {body("m = torch.nn.Linear(in_features='a', out_features=3)\nreturn m"), `t.py:3:25: torch.nn.Linear: argument 'in_features' must be int, not str`},
		"float in a list":               {body("return torch.nn.functional.max_pool2d(random_tensor(), (1.5, 2))"), `t.py:3:60: torch.nn.functional.max_pool2d: argument 'kernel_size' must be int[2], not tuple of float`},
		"number for a tensor":           {body("x = random_tensor()\nreturn torch.relu(3)"), `t.py:4:23: torch.relu: argument 'input' must be Tensor, not int`},
		"untyped":                       {body("x = random_tensor()\nreturn torch.unheard(x, amount=random())"), `t.py:4:29: torch.unheard: the type of argument 'amount' is not known, which random(1, 6) needs; write random(1, 6).to(int), .to(float) or .to(bool)`},
		"untyped positional":            {body("x = random_tensor()\nreturn torch.unheard(x,\n  random(2, 3) + 1)"), `t.py:5:20: torch.unheard: the type of argument 2 is not known, which random(2, 3) needs; write random(2, 3).to(int), .to(float) or .to(bool)`},
		"undrawable":                    {body("return torch.relu(random())"), `t.py:3:23: torch.relu: argument 'input' is Tensor, which random(1, 6) cannot draw; write random(1, 6).to(int), .to(float) or .to(bool)`},
		"untyped value":                 {body("k = random(1, 3)\nreturn torch.relu(random_tensor(ndim=k.value()))"), `t.py:4:42: random(1, 3) has no type here; write random(1, 3).to(int), .to(float) or .to(bool)`},
		"positional nothing":            {body("x = random_tensor()\nreturn torch.relu(x | nothing())"), `t.py:4:25: operator.or_: nothing() leaves out a keyword argument; this one is positional`},
		"positional nothing 2":          {body("x = random_tensor()\nreturn torch.add(x, nothing())"), `t.py:4:25: torch.add: nothing() leaves out a keyword argument; this one is positional`},
		"random_tensor keyword":         {body("x = random_tensor(dim=3)\nreturn x.relu()"), `t.py:3:23: random_tensor: unknown keyword argument 'dim'; it takes ndim, dim0, dim1, dim2, dim3, dim4, low, high, dtype, requires_grad, pin_memory, special, layout`},
		"random_tensor type":            {body("x = random_tensor(ndim='two')\nreturn x.relu()"), `t.py:3:23: random_tensor: argument 'ndim' must be a number or a generator, not str`},
		"random_tensor dtype":           {body("x = random_tensor(dtype='float')\nreturn x.relu()"), `t.py:3:23: random_tensor: argument 'dtype' must be float, int, complex or a dtype such as torch.float64, not str`},
		"random_tensor negative":        {body("x = random_tensor(ndim=1, dim0=random(-3, 0))\nreturn x.relu()"), `t.py:3:9: random_tensor: argument 'dim0' must not be negative or above 2147483647, but is -1`},
		"empty range":                   {body("x = random_tensor(ndim=random(3, 3))\nreturn x.relu()"), `t.py:3:9: random(3, 3): there is no int in [3, 3)`},
		"random keyword":                {body("return torch.relu(random(lo=3))"), `t.py:3:30: random: unknown keyword argument 'lo'; it takes low, high`},
		"drawn possibility":             {body("return torch.relu(random_tensor(ndim=oneof(1, 2, 3, possibility=random(0, 1))))"), `t.py:3:23: oneof: argument 'possibility' is one number, which needs two alternatives, not 3`},
		"class of numerics":             {"@autotest(tolerance='pointwise')\ndef test_x():\n    pass\n", `t.py:1:11: autotest: argument 'tolerance' is "autotest", "exact" or "default"; pointwise limits are the operators' own, which decide when it is not given`},
		"possibility":                   {body("return torch.relu(random_tensor(ndim=oneof(1, 2, 3, possibility=0.5)))"), `t.py:3:57: oneof: argument 'possibility' is one number, which needs two alternatives, not 3`},
		"no call":                       {body("x = random_tensor()\nreturn 3"), `t.py:2:1: t.py::test_it draws nothing: it makes no call of torch`},
		"autotest keyword":              {"@autotest(n=3, rtoll=1)\ndef test_x():\n    pass\n", `t.py:1:16: autotest: unknown keyword argument 'rtoll'; it takes n, auto_backward, rtol, atol, check_graph, check_allclose, check_dtype, check_grad_use_random_data, include_complex, seed, dtypes, layouts, order, tolerance, special, random, refusals`},
		"autotest n":                    {"@autotest(n='3')\ndef test_x():\n    pass\n", `t.py:1:11: autotest: argument 'n' must be a positive int, not str`},
		"autotest backward":             {"@autotest(auto_backward='always')\ndef test_x():\n    pass\n", `t.py:1:11: autotest: argument 'auto_backward' must be True, False or "auto", not str`},
		"two parameters":                {"@autotest()\ndef test_x(a, b):\n    pass\n", `t.py:2:1: test_x must have one parameter, the test case, not 2`},
		"unknown decorator":             {"@torch.jit.interface\n@autotest()\ndef test_x():\n    pass\n", `t.py:3:1: the decorator torch.jit.interface is not supported in test files`},
		"decorated nothing":             {"@autotest()\nx = 3\n", `t.py:2:1: a decorator must be followed by a function or a class`},
		"undefined":                     {body("return torch.relu(y)"), `t.py:3:23: undefined: y`},
		"syntax":                        {body("return torch.relu(x"), `t.py:4:1: got outdent, want ','`},
		"syntax 2":                      {body("x = = 3"), `t.py:3:9: got '=', want primary expression`},
		"indentation":                   {"def f():\nreturn 1\n", `t.py:2:7: got return, want indent`},
		"with":                          {body("with open('x'):\n    pass"), `t.py:3:10: files are not open to test files`},
		"try":                           {body("x = 3\ntry:\n    pass"), `t.py:4:5: try needs an except or a finally clause`},
		"chained comparison":            {body("return 1 < 2 < 'a'"), `t.py:3:12: '<' not supported between instances of 'int' and 'string'`},
		"numpy":                         {"import numpy as np\n" + body("return torch.relu(np.ones(3))"), `t.py:4:23: torch.relu: a ndarray cannot be passed to an operator`},
		"numpy call":                    {"import numpy as np\n" + body("x = np.polyfit(3)\nreturn torch.relu(x)"), `t.py:4:9: numpy.polyfit is not supported in test files`},
		"oneflow":                       {"import oneflow as flow\n" + body("return flow.comm.barrier()"), `t.py:4:12: oneflow.comm.barrier is not supported: a test names no framework but torch, whose calls run on all of them`},
		"stdlib random":                 {"import random\n" + body("return torch.relu(random.betavariate())"), `t.py:4:29: random.betavariate is not supported in test files`},
		"import name":                   {"from plumb import random, radnom\n", `t.py:1:1: plumb has no name radnom`},
		"import syntax":                 {"import torch as\n", `t.py:1:14: unexpected "as" in import`},
		"open string":                   {"x = 'abc\n", `t.py:1:5: the string has no closing quote`},
		"f-string":                      {body("x = 3\nreturn f'{x:3q}'"), `t.py:4:12: invalid format specifier "3q"`},
		"attribute":                     {body("x = 3\nx.grad = 3\nreturn x.relu()"), `t.py:4:6: can't assign to .grad field of int`},
		"assertEqual":                   {"import unittest\nclass TestX(unittest.TestCase):\n    @autotest()\n    def test_x(test_case):\n        test_case.assertEqual(1, 2)\n", `t.py:5:9: the test's assertion failed on the reference: 1 != 2`},
		"raise":                         {body("x = random_tensor()\nraise ValueError('no')"), `t.py:4:5: the test raises ValueError: no`},
		"assert":                        {body("x = random_tensor(ndim=2)\nassert x.ndim == 3, 'three'"), `t.py:4:5: the test's assertion failed: three`},
		"generator compare":             {body("k = random(1, 3)\nif k > 2:\n    pass"), `t.py:4:10: a generator knows the operators +, -, * and |, not gt; use .value() to compute with what it drew`},
		"plain operands":                {body("return 'a' + 1"), `t.py:3:16: unknown binary op: string + int`},
		"dict argument":                 {body("return torch.relu({'a': 1})"), `t.py:3:23: torch.relu: a dict cannot be passed to an operator`},
		"function argument":             {body("return torch.relu(torch.relu)"), `t.py:3:23: torch.relu: torch.relu is a function; call it to get a value`},
		"reserved name":                 {"x = __slice__()\n", `t.py:1:5: the name __slice__ is reserved`},
		"no end of calls":               {body("x = random_tensor()\nfor i in range(20000):\n    x = x + 1"), `t.py:5:15: the test makes more than 10000 calls`},
		"endless loop":                  {body("while True:\n    pass"), `t.py:3:11: this takes more than 1048576 steps; a test must end by itself`},
		"too many elements":             {body("x = [0] * 100000000"), `t.py:3:13: the result of * is too large`},
		"too long range":                {body("x = list(range(1000000000))"), `t.py:3:14: range of more than 1048576 elements`},
		"after decorator columns":       {"@autotest(n=1) ; x\n", `t.py:1:18: a decorator must be followed by a function or a class`},
		"columns behind rewritten text": {body("x = random_tensor(ndim=2); y = x[0:1, :]; z = undefined_name"), `t.py:3:51: undefined: undefined_name`},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Load("t.py", []byte(c.src))
			if err == nil && len(f.Tests()) == 1 {
				_, err = f.Tests()[0].Draw(choice.New(1), Env{Signatures: toySigs})
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s\n%s", err, c.want, e.Excerpt())
			}
		})
	}
}
