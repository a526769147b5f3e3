package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// Losses with a margin.
var marginLosses = []*op.Def{
	composed(&op.Def{
		Sig:     "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.hinge_embedding_loss"},
		Doc:     "Distances of pairs that are alike, target 1, or not, −1: input where target is 1, max(0, margin − input) where it is −1, the sum of both elsewhere.",
		Reject:  firstError(checkLossReduction, rejectTypes(arg.Input, tensor.Bool)),
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(s.Shape(0, 3)...)
			return []any{x, sampleSigns(s, x.Shape()...), 0.375, op.Kw("reduction", lossReductions[s.Index(3)])}
		},
		Tol: lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		x, t := a.Value(arg.Input), a.Value(arg.Target)
		apart := b.Op("where", b.Op("ne", t, 1), b.Op("clamp_min", b.Sub(marginFor(a, x.DType()), x), 0), b.Op("zeros_like", x))
		alike := b.Op("where", b.Op("ne", t, -1), x, b.Op("zeros_like", x))
		return b.Add(apart, alike)
	})),
	composed(&op.Def{
		Sig:     "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.margin_ranking_loss"},
		Doc:     "Ranking of pairs, input1 first for target 1 and input2 for −1: max(0, −target·(input1 − input2) + margin).",
		Reject:  firstError(checkLossReduction, sameDims(arg.Input1, arg.Input2, arg.Target)),
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(s.Shape(0, 3)...)
			return []any{x, s.Tensor(-0.02, 0.02, x.Shape()...), sampleSigns(s, x.Shape()...), 0.375, op.Kw("reduction", lossReductions[s.Index(3)])}
		},
		Tol: lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		apart := b.Mul(b.Neg(a.Value(arg.Target)), b.Sub(a.Value(arg.Input1), a.Value(arg.Input2)))
		return b.Op("clamp_min", b.Add(apart, a.Float(arg.Margin)), 0)
	})),
	composed(&op.Def{
		Sig:     "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.cosine_embedding_loss"},
		Doc:     "Cosine similarity cos of the rows of two matrices, or of two vectors: 1 − cos for target 1, max(0, cos − margin) for −1, else 0.",
		Reject:  firstError(checkLossReduction, checkCosineLoss),
		Sample: func(s *op.Sampler) []any {
			shape := append(s.Shape(0, 1), int(s.Int(2, 6)))
			args := []any{s.Tensor(0.1, 2, shape...), s.Tensor(0.1, 2, shape...), sampleSigns(s, shape[:len(shape)-1]...)}
			return append(args, -0.25, op.Kw("reduction", lossReductions[s.Index(3)]))
		},
		Tol: lossTol,
	}, reducing(cosineLoss)),
	composed(&op.Def{
		Sig:     "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.triplet_margin_loss"},
		Doc:     "max(0, d(anchor, positive) − d(anchor, negative) + margin), d the p-norm of the difference plus eps over the last dimension; swap takes d(positive, negative) where it is the smaller negative distance.",
		Reject:  firstError(checkTripletMargin, checkLossReduction, sameDims(arg.Anchor, arg.Positive, arg.Negative)),
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			p := []float64{1, 2, 3}[s.Index(3)]
			return []any{s.Tensor(0, 1, shape...), s.Tensor(2, 3, shape...), s.Tensor(4, 5, shape...), 50.0, p, 1e-6, s.Bool(), op.Kw("reduction", lossReductions[s.Index(3)])}
		},
		Tol: lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		near := pairDistance(b, a, arg.Anchor, arg.Positive)
		far := pairDistance(b, a, arg.Anchor, arg.Negative)
		if a.Bool(arg.Swap) {
			other := pairDistance(b, a, arg.Positive, arg.Negative)
			far = b.Neg(b.Op("maximum", b.Neg(far), b.Neg(other)))
		}
		return b.Op("clamp_min", b.Sub(b.Add(near, a.Float(arg.Margin)), far), 0)
	})),
	composed(&op.Def{
		Sig:    "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, " + lossTail + ") -> Tensor",
		Names:  []string{"torch.nn.functional.multilabel_soft_margin_loss"},
		Doc:    "Mean over the last dimension, the classes, of −weight·(target·log σ(input) + (1 − target)·log(1 − σ(input))).",
		Reject: firstError(strictReduction, checkClassDimension, lossTypes),
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			args := []any{s.Tensor(-3, 3, shape...), s.Tensor(0, 1, shape...), nil, op.Kw("reduction", lossReductions[s.Index(3)])}
			if s.Bool() {
				args[2] = s.Tensor(0.5, 2, shape[len(shape)-1])
			}
			return args
		},
		Tol: lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		x, t := a.Value(arg.Input), a.Value(arg.Target)
		loss := b.Neg(b.Add(b.Mul(t, b.Op("logsigmoid", x)), b.Mul(b.Sub(1, t), b.Op("logsigmoid", b.Neg(x)))))
		if w := a.Value(arg.Weight); w != nil {
			loss = b.Mul(loss, w)
		}
		last := len(x.Shape()) - 1
		return b.Div(b.Op("sum", loss, op.Kw("dim", last)), x.Shape()[last])
	})),
	composed(&op.Def{
		Sig:     "multi_margin_loss(Tensor input, Tensor target, Scalar p=1, float margin=1.0, Tensor? weight=None, " + lossTail + ") -> Tensor",
		Choices: []string{"p", "reduction"},
		Names:   []string{"torch.nn.functional.multi_margin_loss"},
		Doc:     "Hinge of each class against the class target: Σ weight[target]·max(0, margin − input[target] + input[i])^p over the classes i ≠ target, divided by their number.",
		Reject:  firstError(checkLossReduction, checkMultiMargin),
		Fixed:   []op.Handle{arg.Weight},
		Sample: func(s *op.Sampler) []any {
			n, classes := int(s.Int(1, 4)), int(s.Int(2, 6))
			target := tensor.New(tensor.I64, n)
			for i := range n {
				target.SetInt(i, int64(s.Index(classes)))
			}
			args := []any{s.Distinct(n, classes), target, int(s.Int(1, 3)), 0.37, nil, op.Kw("reduction", lossReductions[s.Index(3)])}
			if s.Bool() {
				args[4] = s.Tensor(0.5, 2, classes)
			}
			return args
		},
		Tol: lossTol,
	}, reducing(multiMargin)),
	{
		Sig:     "multi_margin_loss.index(Tensor target, int classes) -> Tensor",
		Doc:     "The classes, which must be in range.",
		Traits:  op.NoGrad,
		SBP:     axes("target * -> *"),
		Infer:   inferLike(arg.Target),
		Kernels: []op.Kernel{{Name: "integer", Run: runMultiMarginLossIndex}},
		Sample:  sampleMultiMarginLossIndex,
		Tol:     exactTol("a copy of its input"),
	},
	composed(&op.Def{
		Sig:     "multilabel_margin_loss(Tensor input, Tensor target, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.multilabel_margin_loss"},
		Doc:     "Hinge of each class that is no label against each label: Σ max(0, 1 − input[label] + input[i]) over the number of classes. The labels of a row are target's entries before the first −1.",
		Reject:  firstError(checkLossReduction, checkLabels),
		Sample: func(s *op.Sampler) []any {
			x := s.Distinct(int(s.Int(1, 4)), int(s.Int(2, 6)))
			return []any{x, sampleLabels(s, x.Shape()), op.Kw("reduction", lossReductions[s.Index(3)])}
		},
		Tol: lossTol,
	}, reducing(multilabelMargin)),
	{
		Sig:     "multilabel_margin_loss.labels(Tensor target) -> (Tensor index, Tensor label, Tensor other)",
		Doc:     "The labels of each row as indices, 0 for none; which of them are labels; and which classes are none.",
		Traits:  op.NoGrad,
		SBP:     planes(1, arg.Target),
		Infer:   inferMultilabelMarginLossLabels,
		Kernels: []op.Kernel{{Name: "integer", Run: labelRows}},
		Sample:  func(s *op.Sampler) []any { return []any{sampleLabels(s, []int{int(s.Int(1, 4)), int(s.Int(1, 6))})} },
		Tol:     exactTol("indices and truth values"),
	},
}

func runMultiMarginLossIndex(c *op.Run) error {
	for i, t := 0, c.Tensor(arg.Target); i < t.Len(); i++ {
		if v := t.Int(i); v < 0 || v >= int64(c.Int(arg.Classes)) {
			return op.RuntimeError("argument 'target' is out of range: class %d of %d", v, c.Int(arg.Classes))
		}
	}
	c.Out[0].CopyFrom(c.Tensor(arg.Target))
	return nil
}

func sampleMultiMarginLossIndex(s *op.Sampler) []any {
	_, target, _ := sampleClasses(s)
	return []any{target, 6}
}

func inferMultilabelMarginLossLabels(a op.Args) ([]op.Meta, error) {
	s := a.Value(arg.Target).Shape()
	return []op.Meta{{DType: tensor.I64, Shape: s}, {DType: tensor.Bool, Shape: s}, {DType: tensor.Bool, Shape: s}}, nil
}

// marginFor is the margin as a number of the dtype.
func marginFor(a op.Args, d tensor.DType) any {
	if d.IsInt() {
		return int64(a.Float(arg.Margin))
	}
	return a.Float(arg.Margin)
}

// sampleSigns draws a tensor of 1 and −1.
func sampleSigns(s *op.Sampler, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.I64, shape...)
	for i := range t.Len() {
		t.SetInt(i, int64(2*s.Index(2)-1))
	}
	return t
}

// sampleLabels draws rows of different classes that end with −1, or are full.
func sampleLabels(s *op.Sampler, shape []int) *tensor.Tensor {
	t := tensor.New(tensor.I64, shape...)
	for row := range shape[0] {
		n, first := s.Index(shape[1]+1), s.Index(shape[1])
		for i := range shape[1] {
			v := -1
			if i < n {
				v = (first + i) % shape[1]
			}
			t.SetInt(row*shape[1]+i, int64(v))
		}
	}
	return t
}

// sameDims wants as many dimensions in each of the named tensors.
func sameDims(names ...op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		for _, n := range names[1:] {
			if want, got := len(a.Value(names[0]).Shape()), len(a.Value(n).Shape()); got != want {
				return op.RuntimeError("arguments '%s' and '%s' must have as many dimensions, but have %d and %d", names[0], n, want, got)
			}
		}
		return nil
	}
}

func checkCosineLoss(a op.Args) error {
	n := len(a.Value(arg.Target).Shape())
	x, y := len(a.Value(arg.Input1).Shape()), len(a.Value(arg.Input2).Shape())
	_, err := broadcastShape(a.Value(arg.Input1), a.Value(arg.Input2))
	if n == 1 && x == 2 && y < 2 && err == nil {
		return op.IndexError("argument 'input2' has no dimension 1")
	}
	if n > 1 {
		return op.RuntimeError("argument 'target' must have 0 or 1 dimensions, but has %d", n)
	}
	for _, name := range []op.TensorArg{arg.Input1, arg.Input2} {
		if m := len(a.Value(name).Shape()); m != n+1 {
			return op.RuntimeError("argument '%s' must have %d dimensions with a target of %d, but has %d", name, n+1, n, m)
		}
	}
	return nil
}

func cosineLoss(b op.Builder, a op.Args) op.Value {
	x, y, t := a.Value(arg.Input1), a.Value(arg.Input2), a.Value(arg.Target)
	dim := op.Kw("dim", len(t.Shape()))
	square := func(v op.Value) op.Value { return b.Add(b.Op("sum", b.Mul(v, v), dim), 1e-12) }
	cos := b.Div(b.Op("sum", b.Mul(x, y), dim), b.Op("sqrt", b.Mul(square(x), square(y))))
	none := b.Op("zeros_like", cos)
	alike := b.Op("where", b.Op("eq", t, 1), b.Sub(1, cos), none)
	apart := b.Op("where", b.Op("eq", t, -1), b.Op("clamp_min", b.Sub(cos, a.Float(arg.Margin)), 0), none)
	return b.Add(alike, apart)
}

// pairDistance is the p-norm over the last dimension of x − y + eps.
func pairDistance(b op.Builder, a op.Args, x, y op.TensorArg) op.Value {
	d := b.Add(b.Sub(a.Value(x), a.Value(y)), a.Float(arg.Eps))
	last := len(d.Shape()) - 1
	if d.DType().IsComplex() {
		d = b.Op("abs", d)
	}
	if last < 0 {
		return b.Op("abs", d)
	}
	dim := op.Kw("dim", last)
	switch p := a.Float(arg.P); {
	case p == 2:
		return b.Op("sqrt", b.Op("sum", b.Mul(d, d), dim))
	case p == 1 || math.IsInf(p, 0) && tensor.NumElements(d.Shape()) == 0:
		return b.Op("sum", b.Op("abs", d), dim)
	case p == 0:
		return b.Cast(b.Op("sum", b.Op("ne", d, 0), dim), d.DType())
	case math.IsInf(p, 1):
		return b.Op("max.dim", b.Op("abs", d), last)
	case math.IsInf(p, -1):
		return b.Neg(b.Op("max.dim", b.Neg(b.Op("abs", d)), last))
	default:
		return b.Op("pow", b.Op("sum", b.Op("pow", b.Op("abs", d), p), dim), 1/p)
	}
}

func checkClassDimension(a op.Args) error {
	if len(a.Value(arg.Input).Shape()) == 0 {
		return op.IndexError("argument 'input' has no dimension of classes")
	}
	return nil
}

// scoreRows is the shape of scores as rows: one row for fewer than 2 dimensions.
func scoreRows(x op.Value) []int {
	s := x.Shape()
	if len(s) == 2 {
		return s
	}
	return []int{1, tensor.NumElements(s)}
}

func checkScores(a op.Args) error {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	s := x.Shape()
	switch {
	case len(s) > 2 || len(s) > 0 && s[len(s)-1] == 0:
		return op.RuntimeError("argument 'input' must be a vector or matrix with classes, but has size %s", tensor.ShapeString(s))
	case t.DType() != tensor.I64:
		return op.RuntimeError("expected argument 'target' of dtype int64, but found %s", t.DType())
	}
	return sameFloats()(a)
}

func checkMultiMargin(a op.Args) error {
	p, w := a.Scalar(arg.PScalar).Float(), a.Value(arg.Weight)
	switch {
	case p != 1 && p != 2:
		return op.ValueError("argument 'p' must be 1 or 2, but is %v", p)
	case w != nil && len(w.Shape()) != 1:
		return op.ValueError("argument 'weight' must have 1 dimension, but has %d", len(w.Shape()))
	}
	if err := checkScores(a); err != nil {
		return err
	}
	rows, t := scoreRows(a.Value(arg.Input)), a.Value(arg.Target).Shape()
	switch {
	case len(t) > 1 || tensor.NumElements(t) != rows[0]:
		return op.RuntimeError("inconsistent size %s of argument 'target' for %d rows", tensor.ShapeString(t), rows[0])
	case w != nil && w.Shape()[0] != rows[1]:
		return op.RuntimeError("argument 'weight' has %d elements for %d classes", w.Shape()[0], rows[1])
	}
	return sameFloats(arg.Weight)(a)
}

func multiMargin(b op.Builder, a op.Args) op.Value {
	rows := scoreRows(a.Value(arg.Input))
	x := b.Reshape(a.Value(arg.Input), rows)
	index := b.Reshape(b.Op("multi_margin_loss.index", a.Value(arg.Target), rows[1]), []int{rows[0], 1})
	margin := b.Add(b.Sub(x, b.Op("gather", x, 1, index)), a.Float(arg.Margin))
	hinge := positivePart(b, margin)
	if a.Scalar(arg.PScalar).Float() == 2 {
		hinge = b.Mul(hinge, hinge)
	}
	if w := a.Value(arg.Weight); w != nil {
		hinge = b.Mul(hinge, b.Reshape(b.Op("gather", w, 0, b.Reshape(index, []int{rows[0]})), []int{rows[0], 1}))
		hinge = b.Op("where", b.Op("gt", margin, 0), hinge, b.Op("zeros_like", hinge)) // 0, whatever the weight
	}
	hinge = b.Op("scatter", hinge, 1, index, b.Cast(b.Op("zeros_like", index), x.DType()))
	loss := b.Div(b.Op("sum", hinge, op.Kw("dim", 1)), rows[1])
	return b.Reshape(loss, a.Value(arg.Target).Shape())
}

// positivePart is x where it is positive, else 0, of NaN too.
func positivePart(b op.Builder, x op.Value) op.Value {
	return b.Op("where", b.Op("gt", x, 0), x, b.Op("zeros_like", x))
}

func checkLabels(a op.Args) error {
	if err := checkScores(a); err != nil {
		return err
	}
	x, t := a.Value(arg.Input).Shape(), a.Value(arg.Target).Shape()
	if !slices.Equal(x, t) && !(len(x) < 2 && len(t) < 2 && tensor.NumElements(x) == tensor.NumElements(t)) {
		return op.RuntimeError("inconsistent size %s of argument 'target' for input of size %s", tensor.ShapeString(t), tensor.ShapeString(x))
	}
	return nil
}

func multilabelMargin(b op.Builder, a op.Args) op.Value {
	rows := scoreRows(a.Value(arg.Input))
	n, classes := rows[0], rows[1]
	x := b.Reshape(a.Value(arg.Input), rows)
	m := b.All("multilabel_margin_loss.labels", b.Reshape(a.Value(arg.Target), rows))
	labels := b.Reshape(b.Op("gather", x, 1, m[0]), []int{n, classes, 1})
	hinge := positivePart(b, b.Add(b.Sub(b.Reshape(x, []int{n, 1, classes}), labels), 1))
	counts := b.Mul(b.Reshape(m[1], []int{n, classes, 1}), b.Reshape(m[2], []int{n, 1, classes}))
	hinge = b.Op("where", counts, hinge, b.Op("zeros_like", hinge))
	loss := b.Div(b.Op("sum", hinge, op.Kw("dim", []int{1, 2})), classes)
	if len(a.Value(arg.Input).Shape()) < 2 {
		return b.Reshape(loss, []int{})
	}
	return loss
}

func labelRows(c *op.Run) error {
	in := c.Tensor(arg.Target)
	classes := in.Shape()[1]
	index := tensor.Data[int64](c.Out[0])
	for row := range in.Shape()[0] {
		at := row * classes
		for i := range classes {
			v := in.Int(at + i)
			if v < -1 || v >= int64(classes) {
				return op.RuntimeError("argument 'target' is out of range: class %d of %d", v, classes)
			}
			index[at+i] = 0
			c.Out[1].SetInt(at+i, 0)
			c.Out[2].SetInt(at+i, 1)
		}
		for i := 0; i < classes && in.Int(at+i) >= 0; i++ {
			v := in.Int(at + i)
			index[at+i] = v
			c.Out[1].SetInt(at+i, 1)
			c.Out[2].SetInt(at+int(v), 0)
		}
	}
	return nil
}

func checkTripletMargin(a op.Args) error {
	if v := a.Float(arg.Margin); v <= 0 {
		return op.ValueError("argument 'margin' must be greater than 0, but is %v", v)
	}
	return nil
}
