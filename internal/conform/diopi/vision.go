package diopi

import (
	"math"

	"plumb/program"
	"plumb/tensor"
)

// mostBoxes bounds the calls of a program of nms: there are a few a box.
const mostBoxes = 512

// nms takes the boxes by falling score, and of those that overlap too much with
// one that is kept none. Whether a box is kept is certain after as many steps
// as there are boxes before it: in each step, those are kept that none of the
// kept ones before hides.
func nms(b *build) []any {
	shape := b.input("boxes").Shape
	if len(shape) != 2 || shape[1] != 4 || shape[0] > mostBoxes {
		b.refuse("boxes: want at most %d boxes of 4 corners, not %v", mostBoxes, shape)
	}
	order := b.at(b.call("torch.sort", b.arg("scores"), kw("stable", true), kw("descending", true)), int64(1))
	boxes := b.call("torch.index_select", b.arg("boxes"), int64(0), order)
	hides := b.call("torch.gt", b.overlap(boxes), b.number("iou_threshold", 0.5))
	before := b.call("torch.triu", b.call("Tensor.to", hides, kw("dtype", tensor.F32)), int64(1))
	kept := b.call("torch.ones", sizes(1, shape[0]), kw("dtype", tensor.F32))
	for range shape[0] {
		over := b.call("torch.matmul", kept, before)
		kept = b.call("Tensor.to", b.call("torch.eq", over, 0.0), kw("dtype", tensor.F32))
	}
	keep := b.call("torch.reshape", b.call("torch.gt", kept, 0.0), sizes(-1))
	return []any{b.call("torch.masked_select", order, keep)}
}

// overlap is, of each pair of boxes, the area of what they share ÷ that of both.
func (b *build) overlap(boxes any) program.Ref {
	corner := func(i int) program.Ref { return b.at(boxes, program.Slice{}, int64(i)) }
	side := func(from, to any) program.Ref { return b.call("torch.sub", to, from) }
	x1, y1, x2, y2 := corner(0), corner(1), corner(2), corner(3)
	area := b.call("torch.mul", side(x1, x2), side(y1, y2))
	column := func(v any) program.Ref { return b.call("torch.unsqueeze", v, int64(1)) }
	shared := func(from, to any) program.Ref {
		ends := b.call("torch.minimum", to, column(to))
		return b.call("torch.clamp", side(b.call("torch.maximum", from, column(from)), ends), kw("min", 0.0))
	}
	both := b.call("torch.mul", shared(x1, x2), shared(y1, y2))
	return b.call("torch.div", both, b.call("torch.sub", b.call("torch.add", area, column(area)), both))
}

// roiAlign pools each box of an image over a grid: the mean of samples that are
// interpolated between pixels. Samples of a column have the same horizontal
// weights and those of a row the same vertical ones, so that a box is the
// product of two matrices with its image.
func roiAlign(b *build) []any {
	image, boxes := b.input("input"), b.input("boxes")
	if len(image.Shape) != 4 || len(boxes.Shape) != 2 || boxes.Shape[1] != 5 {
		b.refuse("input and boxes: want images and rows of a number and 4 corners, not %v and %v", image.Shape, boxes.Shape)
	}
	high, across := b.gridSize()
	g := &grid{build: b, boxes: boxes.Materialize(), scale: b.number("spatial_scale", 1), samples: int(b.number("sampling_ratio", -1)), aligned: b.arg("aligned") == true}
	x := b.wide(b.arg("input"), image.DType)
	var out program.List
	for i := range boxes.Shape[0] {
		row := b.at(b.wide(b.arg("boxes"), boxes.DType), int64(i))
		one := b.at(x, int64(real(g.boxes.At(i*5))))
		down := g.weights(row, i, 1, high, image.Shape[2])
		side := g.weights(row, i, 0, across, image.Shape[3])
		out = append(out, b.call("torch.matmul", b.call("torch.matmul", down, one), b.call("torch.transpose", side, int64(0), int64(1))))
	}
	if len(out) == 0 {
		return []any{b.call("torch.zeros", sizes(0, image.Shape[1], high, across), kw("dtype", image.DType))}
	}
	return []any{b.narrow(b.call("torch.stack", out), image.DType)}
}

// gridSize is output_size, one number for both sides.
func (b *build) gridSize() (high, across int) {
	switch v := b.arg("output_size").(type) {
	case int64:
		return int(v), int(v)
	case program.Tuple:
		if n := b.integers("output_size", v); len(n) == 2 {
			return int(n[0]), int(n[1])
		}
	case program.List:
		if n := b.integers("output_size", v); len(n) == 2 {
			return int(n[0]), int(n[1])
		}
	}
	b.refuse("output_size: want one or two integers")
	return 0, 0
}

// grid places the samples of boxes.
type grid struct {
	*build
	boxes   *tensor.Tensor
	scale   float64
	samples int // a bin and side; of 0 and less as many as the box has pixels there
	aligned bool
}

// weights is the matrix that takes the pixels of one side of an image, axis 0
// across and 1 down, to the bins of a box: n bins by size pixels.
func (g *grid) weights(row any, box, axis, n, size int) program.Ref {
	per := g.perBin(box, axis, n)
	if per <= 0 {
		return g.call("torch.zeros", sizes(n, size), kw("dtype", g.computed("input")))
	}
	start, length := g.extent(row, axis)
	places := make(program.List, n*per)
	for i := range places {
		places[i] = (float64(i) + 0.5) / float64(per)
	}
	d := g.computed("boxes")
	bin := g.call("torch.div", length, int64(n))
	at := g.call("torch.add", g.call("torch.mul", g.call("torch.tensor", places, kw("dtype", d)), bin), start)
	inside := g.call("torch.mul",
		g.call("Tensor.to", g.call("torch.ge", at, -1.0), kw("dtype", d)),
		g.call("Tensor.to", g.call("torch.le", at, float64(size)), kw("dtype", d)))
	at = g.call("torch.unsqueeze", g.call("torch.clamp", at, 0.0, float64(size-1)), int64(1))
	pixels := g.call("torch.arange", int64(size), kw("dtype", d))
	near := g.call("torch.rsub", g.call("torch.abs", g.call("torch.sub", at, pixels)), 1.0)
	near = g.call("torch.mul", g.call("torch.clamp", near, kw("min", 0.0)), g.call("torch.unsqueeze", inside, int64(1)))
	bins := g.call("torch.mean", g.call("torch.reshape", near, sizes(n, per, size)), int64(1))
	if to := g.computed("input"); to != d {
		bins = g.call("Tensor.to", bins, kw("dtype", to))
	}
	return bins
}

// computed is the dtype in which a function computes with an argument.
func (b *build) computed(name string) tensor.DType { return wider(b.input(name).DType) }

// extent is where a box begins and how long it is.
func (g *grid) extent(row any, axis int) (start, length any) {
	scaled := func(i int) program.Ref { return g.call("torch.mul", g.at(row, int64(i)), g.scale) }
	from, to := scaled(1+axis), scaled(3+axis)
	length = g.call("torch.sub", to, from)
	if g.aligned {
		return g.call("torch.sub", from, 0.5), length
	}
	return from, g.call("torch.clamp", length, kw("min", 1.0))
}

// perBin is how many samples a bin has along an axis: none where the box has no
// extent there.
func (g *grid) perBin(box, axis, n int) int {
	if g.samples > 0 {
		return g.samples
	}
	corner := func(i int) float32 { return float32(real(g.boxes.At(box*5+i))) * float32(g.scale) }
	length := corner(3+axis) - corner(1+axis)
	if !g.aligned {
		length = max(length, 1)
	}
	return int(math.Ceil(float64(length / float32(n))))
}

// focalLoss is the binary cross entropy of logits, times (1 − p)^gamma of the
// probability p of the truth, and times alpha for targets of 1 and 1 − alpha for
// those of 0 where alpha is not negative.
func focalLoss(b *build) []any {
	x, t := b.arg("inputs"), b.arg("targets")
	p := b.call("torch.sigmoid", x)
	entropy := b.call("torch.nn.functional.binary_cross_entropy_with_logits", x, t, kw("reduction", "none"))
	either := func(y any) program.Ref { // y·t + (1 − y)·(1 − t)
		return b.call("torch.add", b.call("torch.mul", y, t), b.call("torch.mul", b.call("torch.rsub", y, 1.0), b.call("torch.rsub", t, 1.0)))
	}
	loss := b.call("torch.mul", entropy, b.call("torch.pow", b.call("torch.rsub", either(p), 1.0), b.number("gamma", 2)))
	if alpha := b.number("alpha", 0.25); alpha >= 0 {
		share := b.call("torch.add", b.call("torch.mul", t, alpha), b.call("torch.mul", b.call("torch.rsub", t, 1.0), 1-alpha))
		loss = b.call("torch.mul", share, loss)
	}
	switch b.arg("reduction") {
	case "mean":
		loss = b.call("torch.mean", loss)
	case "sum":
		loss = b.call("torch.sum", loss)
	}
	return []any{loss}
}
