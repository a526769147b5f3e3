package compare

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"sync"

	"plumb/tensor"
)

var inf = Number(math.Inf(1))

// meter judges and measures chunk after chunk.
type meter struct {
	buf    *buffers
	rule   rule
	opts   Options
	dtype  tensor.DType
	decode func(s *side, bytes []byte)
	// measure is how a block of the dtype is measured where fast is not.
	measure func(*meter, *block)
	quick   bool // whether fast and SIMD may be used
	brief   bool // whether the verdict is all that is asked

	nonFinite, far int // elements that break rule 5 and rule 6
	firstNonFinite int // row-major positions; -1 for none
	firstFar       int
	finite         int // elements that count in the sums
	sums           sums
	worst          float64 // ratio
	worstErr       float64
	worstAt        int // position of worst; -1 while every error is 0
	maxAbs, maxRel float64
	maxULP         uint64
	above, below   int // errors above and below 0, by component
	hist           Hist

	lanes [8]sums // of the current chunk, by fast

	prepared, close bool // whether estimable was asked, and its answer
}

// sums over the finite elements: of |e|, e², and the products of want and got.
type sums struct{ err, err2, ww, gg, wg float64 }

func (s *sums) add(t sums) {
	s.err += t.err
	s.err2 += t.err2
	s.ww += t.ww
	s.gg += t.gg
	s.wg += t.wg
}

var meters = sync.Pool{New: func() any { return &meter{buf: new(buffers)} }}

// newMeter returns a meter that may be given back with free.
func newMeter(d tensor.DType, r rule, o Options) *meter {
	m := meters.Get().(*meter)
	*m = meter{buf: m.buf, rule: r, opts: o, dtype: d, decode: decoders[d], firstNonFinite: -1, firstFar: -1, worstAt: -1}
	switch {
	case d.IsComplex():
		m.measure = (*meter).complexes
	case d.IsFloat():
		m.measure = (*meter).floats
		m.quick = true
	default:
		m.measure = (*meter).integers
	}
	return m
}

func (m *meter) free() { meters.Put(m) }

// chunk judges a chunk and reports whether the next is of interest.
func (m *meter) chunk(c chunk) bool {
	switch {
	case m.brief && m.surely(c):
	case m.quick && m.simd(c):
	default:
		m.blocks(c)
	}
	return !m.brief || m.nonFinite+m.far == 0
}

// surely reports whether every element of a chunk has the expected bits, or is
// within the limit beyond doubt.
func (m *meter) surely(c chunk) bool {
	return m.within(c) || !m.opts.NaNDiffers && bytes.Equal(c.want, c.got)
}

// blocks judges a chunk without SIMD.
func (m *meter) blocks(c chunk) {
	b, size := &m.buf.block, m.dtype.Size()
	for from := 0; from < c.n; from += blockLen {
		b.start, b.n = c.start+from, min(blockLen, c.n-from)
		want, got := c.want[from*size:][:b.n*size], c.got[from*size:][:b.n*size]
		m.decode(&b.want, want)
		if m.quick && bytes.Equal(want, got) && m.alike(b) {
			continue
		}
		m.decode(&b.got, got)
		if m.quick {
			m.fast(b)
		} else {
			m.measure(m, b)
		}
	}
	if m.quick {
		m.foldLanes()
	}
}

// fast measures a block of real numbers. Element i adds to lane i mod 8 of the
// sums, or i mod 4 in float64, as the vectors of SIMD do.
func (m *meter) fast(b *block) {
	special, differ := m.patch(b)
	n := b.n
	w, g, errs, ratios := b.want.vals[:n], b.got.vals[:n], b.errs[:n], b.ratios[:n]
	rtol, atol := m.rule.rtol, m.rule.atol
	maxAbs, maxRel := m.maxAbs, m.maxRel
	lane := 7
	if m.dtype == tensor.F64 {
		lane = 3
	}
	for i, x := range w {
		y := g[i]
		d := y - x
		e, mag := math.Abs(d), math.Abs(x)
		r := e / (atol + float64(rtol*mag))
		switch {
		case e == 0:
			r = 0
		case e > math.MaxFloat64:
			r = math.Inf(1)
		}
		s := &m.lanes[i&lane]
		s.err += e
		s.err2 = math.FMA(d, d, s.err2)
		s.ww = math.FMA(x, x, s.ww)
		s.gg = math.FMA(y, y, s.gg)
		s.wg = math.FMA(x, y, s.wg)
		maxAbs = max(maxAbs, e)
		if e >= float64(maxRel*mag)*(1-0x1p-50) && mag > 0 {
			maxRel = max(maxRel, e/mag)
		}
		errs[i], ratios[i] = d, r
	}
	m.maxAbs, m.maxRel = maxAbs, maxRel
	m.finite += n - special
	m.steps(b)
	m.count(b)
	m.hist[0] -= differ
	m.hist[len(m.hist)-1] += differ
	m.judge(b)
}

// alike is fast for a block whose sides have the same bits; it reports whether these
// are numbers.
func (m *meter) alike(b *block) bool {
	w := b.want.vals[:b.n]
	if !allFinite(w, w) {
		return false
	}
	lane := 7
	if m.dtype == tensor.F64 {
		lane = 3
	}
	for i, x := range w {
		s := &m.lanes[i&lane]
		s.ww = math.FMA(x, x, s.ww)
		s.gg = math.FMA(x, x, s.gg)
		s.wg = math.FMA(x, x, s.wg)
	}
	m.finite += b.n
	m.hist[bin(0)] += b.n
	return true
}

// foldLanes adds what fast summed over a chunk, in the order of SIMD.
func (m *meter) foldLanes() {
	l := &m.lanes
	for width := 4; width > 0; width /= 2 {
		for i := range width {
			l[i].add(l[i+width])
		}
	}
	m.sums.add(l[0])
	*l = [8]sums{}
}

// patch judges the elements that rule 5 decides and sets them to zero on both
// sides, where they change nothing that is measured. It returns how many they
// are, and how many of them differ.
func (m *meter) patch(b *block) (special, differ int) {
	w, g := b.want.vals[:b.n], b.got.vals[:b.n]
	if allFinite(w, g) && !(m.opts.SignedZero && zerosOpposed(w, g)) {
		return 0, 0
	}
	for i, x := range w {
		s, same := m.special(x, g[i])
		if !s && same {
			continue
		}
		special++
		if !same {
			differ++
			m.differAt(b.start + i)
		}
		w[i], g[i], b.want.ords[i], b.got.ords[i] = 0, 0, 0, 0
	}
	return special, differ
}

func allFinite(w, g []float64) bool {
	check := 0.0
	for i, x := range w {
		check += float64(x*0) + float64(g[i]*0)
	}
	return check == 0
}

// zerosOpposed reports whether there are zeros of opposite signs.
func zerosOpposed(w, g []float64) bool {
	for i, x := range w {
		if x == 0 && g[i] == 0 && math.Signbit(x) != math.Signbit(g[i]) {
			return true
		}
	}
	return false
}

// steps finds the largest ULP distance, and where the limit allows some ULP
// lowers the ratios to it.
func (m *meter) steps(b *block) {
	w, g := b.want.ords[:b.n], b.got.ords[:b.n]
	most := m.maxULP
	for i, x := range w {
		most = max(most, steps(x, g[i]))
	}
	m.maxULP = most
	if m.rule.ulp == 0 {
		return
	}
	for i, x := range w {
		b.ratios[i] = min(b.ratios[i], float64(steps(x, g[i]))/m.rule.ulp)
	}
}

// count counts errors by sign and ratios by decade. Neighbours are counted in
// different bins, because an increment must wait for the one before it.
func (m *meter) count(b *block) {
	ratios := b.ratios[:b.n]
	var bins [4][16]int
	nonzero, below := 0, 0
	for i, d := range b.errs[:b.n] {
		differs, negative := signs(d)
		nonzero += differs
		below += negative
		bins[i&3][bin(ratios[i])&15]++
	}
	m.above += nonzero - below
	m.below += below
	for i := range m.hist {
		m.hist[i] += bins[0][i] + bins[1][i] + bins[2][i] + bins[3][i]
	}
}

// judge finds the worst ratio and those above 1.
func (m *meter) judge(b *block) {
	for i, r := range b.ratios[:b.n] {
		if r > m.worst || math.IsInf(r, 1) {
			m.worstOf(b.start+i, r, math.Abs(b.errs[i]))
		}
		if r > 1 {
			m.farAt(b.start + i)
		}
	}
}

// worstOf keeps the largest ratio; among infinite ones that of the largest error.
func (m *meter) worstOf(at int, ratio, err float64) {
	if ratio > m.worst || math.IsInf(ratio, 1) && err > m.worstErr {
		m.worst, m.worstErr, m.worstAt = ratio, err, at
	}
}

func (m *meter) farAt(at int) {
	if m.firstFar < 0 {
		m.firstFar = at
	}
	m.far++
}

// floats measures a block of real numbers with care.
func (m *meter) floats(b *block) {
	for i := range b.n {
		x, y := b.want.vals[i], b.got.vals[i]
		if special, same := m.special(x, y); special || !same {
			m.nonFiniteAt(b.start+i, same)
			continue
		}
		m.products(x, y, y-x)
		m.element(b.start+i, math.Abs(y-x), math.Abs(x), steps(b.want.ords[i], b.got.ords[i]))
	}
}

// integers measures a block of integers, exactly.
func (m *meter) integers(b *block) {
	for i := range b.n {
		x, y := b.want.ords[i], b.got.ords[i]
		u := steps(x, y)
		m.products(b.want.vals[i], b.got.vals[i], float64(cmp.Compare(y, x)))
		m.element(b.start+i, float64(u), math.Abs(b.want.vals[i]), u)
	}
}

// complexes measures a block of complex numbers.
func (m *meter) complexes(b *block) {
	for i := range b.n {
		w, g := b.want.vals[2*i:2*i+2], b.got.vals[2*i:2*i+2]
		special, same := m.specials(b, i)
		if special == 2 || !same {
			m.nonFiniteAt(b.start+i, same)
			continue
		}
		m.products(w[0], g[0], g[0]-w[0])
		m.products(w[1], g[1], g[1]-w[1])
		u := max(steps(b.want.ords[2*i], b.got.ords[2*i]), steps(b.want.ords[2*i+1], b.got.ords[2*i+1]))
		m.element(b.start+i, math.Hypot(g[0]-w[0], g[1]-w[1]), math.Hypot(w[0], w[1]), u)
	}
}

// specials judges the components of a complex number by rule 5: how many are
// special, and whether all agree. It sets those that are to zero, so that the
// other one is judged by its distance.
func (m *meter) specials(b *block, at int) (special int, same bool) {
	same = true
	for i := 2 * at; i < 2*at+2; i++ {
		s, ok := m.special(b.want.vals[i], b.got.vals[i])
		same = same && ok
		if s {
			special++
			b.want.vals[i], b.got.vals[i], b.want.ords[i], b.got.ords[i] = 0, 0, 0, 0
		}
	}
	return special, same
}

// special judges a number by rule 5: whether either side is not finite, and
// whether the sides agree in that and, where asked, in the sign of zero.
func (m *meter) special(x, y float64) (special, same bool) {
	switch {
	case x != x || y != y:
		return true, x != x && y != y && !m.opts.NaNDiffers
	case math.IsInf(x, 0) || math.IsInf(y, 0):
		return true, x == y
	}
	return false, !m.opts.SignedZero || x != 0 || y != 0 || math.Signbit(x) == math.Signbit(y)
}

// nonFiniteAt counts an element that rule 5 decides.
func (m *meter) nonFiniteAt(at int, same bool) {
	if same {
		m.hist[0]++
		return
	}
	m.hist[len(m.hist)-1]++
	m.differAt(at)
}

func (m *meter) differAt(at int) {
	m.nonFinite++
	if m.firstNonFinite < 0 {
		m.firstNonFinite = at
	}
}

// products adds one component to the sums that compare directions.
func (m *meter) products(x, y, d float64) {
	m.sums.ww += float64(x * x)
	m.sums.gg += float64(y * y)
	m.sums.wg += float64(x * y)
	switch {
	case d > 0:
		m.above++
	case d < 0:
		m.below++
	}
}

// signs returns 1 for an error other than 0, and 1 for one below 0.
func signs(d float64) (differs, negative int) {
	bits := math.Float64bits(d)
	abs := bits << 1
	differs = int((abs | -abs) >> 63)
	return differs, int(bits>>63) & differs
}

// steps returns the distance of two places on a grid.
func steps(a, b int64) uint64 { return uint64(max(a, b)) - uint64(min(a, b)) }

// element counts one finite element by its error, the magnitude of what was
// expected and the distance in ULP.
func (m *meter) element(at int, err, magnitude float64, ulp uint64) {
	m.finite++
	m.sums.err += err
	m.sums.err2 += float64(err * err)
	m.maxAbs = max(m.maxAbs, err)
	m.maxULP = max(m.maxULP, ulp)
	if magnitude > 0 {
		m.maxRel = max(m.maxRel, err/magnitude)
	}
	r := m.rule.ratio(err, magnitude, float64(ulp))
	m.hist[bin(r)]++
	m.worstOf(at, r, err)
	if r > 1 {
		m.farAt(at)
	}
}

// diff draws the conclusion from what was counted.
func (m *meter) diff(want, got *tensor.Tensor, total int) Diff {
	d := Diff{
		OK: true, Total: total, Mismatches: m.nonFinite + m.far, WorstRatio: Number(m.worst),
		MaxAbs: Number(m.maxAbs), MaxRel: Number(m.maxRel), MaxULP: Number(m.maxULP),
		Bias: m.bias(), Cosine: m.cosine(), Hist: m.hist,
	}
	if m.finite > 0 {
		d.MeanAbs = Number(m.sums.err / float64(m.finite))
		d.RMSE = Number(math.Sqrt(m.sums.err2 / float64(m.finite)))
	}
	first, worst := m.firstFar, m.worstAt
	switch {
	case m.nonFinite > 0:
		d.OK, d.Rule, d.WorstRatio = false, NonFinite, inf
		first, worst = m.firstNonFinite, m.firstNonFinite
	case m.far > 0:
		d.OK, d.Rule = false, Distance
	default:
		first = -1
	}
	if first >= 0 {
		d.First = unravel(first, want.Shape())
	}
	if worst >= 0 {
		d.Worst = unravel(worst, want.Shape())
	}
	if !d.OK {
		d.Want, d.Got = Element(want, worst), Element(got, worst)
		d.Message = m.message(&d)
	}
	return d
}

func (m *meter) message(d *Diff) string {
	share := fmt.Sprintf("%d of %d elements", d.Mismatches, d.Total)
	at := tensor.ShapeString(d.Worst)
	if d.Rule == NonFinite {
		return fmt.Sprintf("%s differ; at %s got %s, want %s", share, at, d.Got, d.Want)
	}
	far := fmt.Sprintf("is %s x the limit", d.WorstRatio)
	if math.IsInf(m.worst, 1) && !math.IsInf(m.worstErr, 1) {
		far = "where none is allowed"
	}
	return fmt.Sprintf("%s differ; worst at %s: got %s, want %s, error %s %s", share, at, d.Got, d.Want, Number(m.worstErr), far)
}

func (m *meter) bias() Number {
	if m.above+m.below == 0 {
		return 0
	}
	return Number(float64(m.above-m.below) / float64(m.above+m.below))
}

func (m *meter) cosine() Number {
	s := m.sums
	switch {
	case s.err2 == 0 && s.err == 0:
		return 1
	case s.ww == 0 || s.gg == 0:
		return 0
	}
	return Number(max(-1, min(1, s.wg/(math.Sqrt(s.ww)*math.Sqrt(s.gg)))))
}
