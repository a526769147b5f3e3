package compare

import (
	"math"
	"slices"
	"unsafe"

	"golang.org/x/sys/cpu"

	"plumb/tensor"
)

// useSIMD is changed by tests only.
var useSIMD = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasPOPCNT

const (
	// padTo is what the passes take a multiple of.
	padTo = 32
	// slack is more than the relative error of an estimated ratio, 5·2⁻²⁴.
	slack = 0x1p-20
	// nearEdge is how far an estimate may be above the start of the window
	// around an edge, in float32 steps: see edgeSlack in internal/asmgen/compare.
	nearEdge = 16
	// tiny is the magnitude below which estimates are not trusted.
	tiny = 0x1p-80
	// huge is the limit above which estimates are not trusted.
	huge = 0x1p127
	// sterbenz is a distance in ULP within which one number is at most twice the
	// other, so that their difference is exact (Sterbenz's lemma).
	sterbenz = 1 << 22
	// the bits of infinity
	infinity32 = int32(0xff << 23)
	infinity64 = int64(0x7ff << 52)
	// mostError is below the least error between numbers that are 2³¹ ULP apart.
	mostError = 2
)

// simdBuffers hold a padded chunk and what the passes leave about its elements.
type simdBuffers struct {
	w, g   [chunkLen]uint64
	ratios [chunkLen]uint64
	bins   [chunkLen]int8
	rate   rate32
}

// rate32 is what rates32, ratesWide32 and ratesULP32 are given, and what they
// find.
type rate32 struct {
	in struct {
		rtol    float32
		inverse float32 // 1 ÷ a relative error
		scale   float32 // 1 ÷ ULP limit
		_       float32
		// edges are the fewest steps that are above Decades[1:] times the limit.
		edges [8]int32
		atol  [8]float32 // all alike
	}
	out struct {
		worst    float32  // the largest estimate
		relative float32  // above 0 when a relative error may be above 1 ÷ in.inverse
		edge     [4]uint8 // the least of them: steps from the start of the window of an edge
		maxULP   uint32
		above    uint32
		below    uint32
		least    uint32  // bits of the smallest magnitude of want but 0, less 1
		maxAbs   float32 // of errors in float32
	}
	bins [8]uint64 // elements of Hist[2:]
}

// total is what sums32 and sums64 find.
type total struct {
	sums
	maxAbs, maxRel float64 // maxRel by sums64 only
}

func (m *meter) simd(c chunk) bool {
	if !useSIMD {
		return false
	}
	switch m.dtype {
	case tensor.F32:
		return m.estimable() && m.simd32(c)
	case tensor.F64:
		return m.simd64(c)
	}
	return false
}

// padded returns a side of a chunk as whole vectors, in place or in buf.
func padded[T tensor.Elem](bytes []byte, buf *[chunkLen]uint64) []T {
	v := view[T](bytes)
	if len(v)%padTo == 0 {
		return v
	}
	p := view[T](bytesOf(buf[:]))[:(len(v)+padTo-1)&^(padTo-1)]
	clear(p[copy(p, v):])
	return p
}

// zeroed tells what patchInto set to zero.
type zeroed struct {
	special, differ int
	first           int // place of the first that differs; -1 for none
}

// patchInto returns the sides with the elements that rule 5 decides zeroed, in
// the buffers if there are any.
func patchInto[T float32 | float64, I int32 | int64](m *meter, w, g []T, infinity I) (pw, pg []T, z zeroed) {
	z.first = -1
	b := &m.buf.simd
	pw, pg = view[T](bytesOf(b.w[:]))[:len(w)], view[T](bytesOf(b.g[:]))[:len(g)]
	apart := &pw[0] != &w[0] // else w was padded in the buffer
	if x, y := bitsOf[I](w), bitsOf[I](g); apart && !m.opts.NaNDiffers && !(m.opts.SignedZero && zerosDiffer(x, y)) {
		if n, agree := zeroSpecial(bitsOf[I](pw), bitsOf[I](pg), x, y, infinity); agree {
			z.special = n
			return pw, pg, z
		}
	}
	copy(pw, w)
	copy(pg, g)
	for i, x := range pw {
		y := pg[i]
		if x-x == 0 && y-y == 0 && (x != 0 || y != 0 || !m.opts.SignedZero) {
			continue
		}
		special, same := m.special(float64(x), float64(y))
		if !special && same {
			continue
		}
		z.special++
		if !same {
			z.differ++
			if z.first < 0 {
				z.first = i
			}
		}
		pw[i], pg[i] = 0, 0
	}
	return pw, pg, z
}

// zeroSpecial copies the bits of w and g with zeros where a side is not finite,
// and counts these; agree says that both sides have a NaN or the same infinity there.
func zeroSpecial[I int32 | int64](pw, pg, w, g []I, infinity I) (special int, agree bool) {
	sign := 8*unsafe.Sizeof(infinity) - 1
	size := ^(I(-1) << sign)
	pw, pg, g = pw[:len(w)], pg[:len(w)], g[:len(w)]
	all := I(-1)
	for i, x := range w {
		y := g[i]
		a, b := x&size-infinity, y&size-infinity // below 0 for finite numbers, above 0 for NaN
		finite, nan, differ := (a&b)>>sign, (-a&-b)>>sign, ((x^y)|-(x^y))>>sign
		all &= finite | nan | ^differ
		pw[i], pg[i] = x&finite, y&finite
		special += int(finite) + 1
	}
	return special, all != 0
}

func bitsOf[I int32 | int64, T float32 | float64](v []T) []I {
	return unsafe.Slice((*I)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// zerosDiffer reports whether zeros, given by their bits, have opposite signs.
func zerosDiffer[T int32 | int64](w, g []T) bool {
	g = g[:len(w)]
	for i, x := range w {
		if y := g[i]; (x|y)<<1 == 0 && x != y {
			return true
		}
	}
	return false
}

// addTotal counts the sums of a chunk and what patchInto found.
func (m *meter) addTotal(c chunk, t *total, z zeroed) {
	m.finite += c.n - z.special
	m.sums.add(t.sums)
	m.maxAbs = max(m.maxAbs, t.maxAbs)
	if z.differ > 0 && m.firstNonFinite < 0 {
		m.firstNonFinite = c.start + z.first
	}
	m.nonFinite += z.differ
	m.hist[0] -= z.differ
	m.hist[len(m.hist)-1] += z.differ
}

func (m *meter) simd64(c chunk) bool {
	b := &m.buf.simd
	w, g := padded[float64](c.want, &b.w), padded[float64](c.got, &b.g)
	ratios := (*[chunkLen]float64)(unsafe.Pointer(&b.ratios))
	in := [2]float64{m.rule.rtol, m.rule.atol}
	var t total
	sums64(&w[0], &g[0], len(w), &in, &ratios[0], (*[7]float64)(unsafe.Pointer(&t)))
	z := zeroed{first: -1}
	if !(t.ww+t.gg <= math.MaxFloat64) || m.opts.SignedZero && zerosDiffer(view[int64](c.want), view[int64](c.got)) {
		if w, g, z = patchInto(m, w, g, infinity64); z.special > 0 {
			sums64(&w[0], &g[0], len(w), &in, &ratios[0], (*[7]float64)(unsafe.Pointer(&t)))
		}
	}
	if t.maxAbs > math.MaxFloat64 {
		return false
	}
	m.addTotal(c, &t, z)
	if t.err == 0 {
		m.hist[0] += c.n
		return true
	}
	m.maxRel = max(m.maxRel, t.maxRel)
	m.steps64(w, g, &ratios[0])
	m.count64(c, ratios[:len(w)], w, g)
	return true
}

// steps64 counts distances in ULP, and lowers the ratios to theirs.
func (m *meter) steps64(w, g []float64, ratios *float64) {
	var out [6]uint64 // four lanes of the largest distance, errors above 0, below 0
	if m.rule.ulp == 0 {
		steps64(&w[0], &g[0], len(w), &out)
	} else {
		stepsULP64(&w[0], &g[0], len(w), m.rule.ulp, ratios, &out)
	}
	m.maxULP = max(m.maxULP, out[0], out[1], out[2], out[3])
	m.above += int(out[4])
	m.below += int(out[5])
}

func (m *meter) count64(c chunk, ratios, w, g []float64) {
	var out struct {
		above [len(Decades)]uint64 // elements above each of Decades
		worst float64
	}
	count64(&ratios[0], len(ratios), (*[10]uint64)(unsafe.Pointer(&out)))
	more := uint64(c.n)
	for i, above := range out.above {
		m.hist[i] += int(more - above)
		more = above
	}
	m.hist[len(m.hist)-1] += int(more)
	far := int(out.above[5])
	if far > 0 && m.firstFar < 0 {
		m.firstFar = c.start + firstAbove(ratios, 1)
	}
	m.far += far
	if out.worst > m.worst || math.IsInf(out.worst, 1) {
		for i, r := range ratios {
			if r == out.worst {
				m.worstOf(c.start+i, r, math.Abs(g[i]-w[i]))
			}
		}
	}
}

func firstAbove(ratios []float64, limit float64) int {
	i := 0
	for ratios[i] <= limit {
		i++
	}
	return i
}

// estimable reports whether ratios to the limit can be estimated in float32.
func (m *meter) estimable() bool {
	if !m.prepared {
		m.prepared, m.close = true, m.prepare()
	}
	return m.close
}

// prepare sets what rates32 is given.
func (m *meter) prepare() bool {
	in, r := &m.buf.simd.rate.in, &m.rule
	within := func(x, lo, hi float64) bool { return x == 0 || x >= lo && x <= hi }
	if !within(r.rtol, 0x1p-40, 0x1p40) || !within(r.atol, 0x1p-100, 0x1p100) || !within(r.ulp, 0x1p-20, 0x1p20) {
		return false
	}
	in.rtol, in.scale = float32(r.rtol), float32(1/r.ulp)
	for i := range in.atol {
		in.atol[i] = float32(r.atol)
		if r.exact() {
			in.atol[i] = 1 // any: the ratios are not used
		}
	}
	for i := range in.edges {
		in.edges[i] = fewest(Decades[i+1], r.ulp)
	}
	return true
}

// exact reports whether equal values are asked.
func (r *rule) exact() bool { return r.rtol == 0 && r.atol == 0 && r.ulp == 0 }

// fewest returns the fewest steps whose ratio to the limit is above an edge.
func fewest(edge, limit float64) int32 {
	n := int32(edge * limit)
	for n > 1 && float64(n-1)/limit > edge {
		n--
	}
	for n < 1 || float64(n)/limit <= edge {
		n++
	}
	return n
}

func (m *meter) simd32(c chunk) bool {
	b := &m.buf.simd
	w, g := padded[float32](c.want, &b.w), padded[float32](c.got, &b.g)
	var t total
	sums32(&w[0], &g[0], len(w), (*[7]float64)(unsafe.Pointer(&t)))
	z := zeroed{first: -1}
	if !(t.ww+t.gg <= math.MaxFloat64) || m.opts.SignedZero && zerosDiffer(view[int32](c.want), view[int32](c.got)) {
		w, g, z = patchInto(m, w, g, infinity32)
		sums32(&w[0], &g[0], len(w), (*[7]float64)(unsafe.Pointer(&t)))
	}
	if t.err == 0 {
		m.addTotal(c, &t, z)
		m.hist[0] += c.n
		return true
	}
	m.estimate(w, g)
	t.maxAbs = float64(b.rate.out.maxAbs)
	if b.rate.out.maxULP > sterbenz {
		sumsMost32(&w[0], &g[0], len(w), (*[7]float64)(unsafe.Pointer(&t)))
	}
	if t.maxAbs > math.MaxFloat32 {
		return false
	}
	m.addTotal(c, &t, z)
	m.rate32(c, w, g, &t)
	return true
}

// estimate finds the ratios of a chunk, and what rate32.out holds.
func (m *meter) estimate(w, g []float32) {
	b := &m.buf.simd
	k := &b.rate
	k.in.inverse = float32(max(0x1p-126, min((1+slack)/m.maxRel, 0x1p100)))
	in, out := (*[20]uint32)(unsafe.Pointer(&k.in)), (*[8]uint32)(unsafe.Pointer(&k.out))
	ratios := (*float32)(unsafe.Pointer(&b.ratios))
	if m.rule.ulp > 0 {
		ratesULP32(&w[0], &g[0], len(w), in, ratios, &b.bins[0], out)
		return
	}
	if m.maxAbs < mostError && (m.rule.exact() || m.rule.atol >= 0x1p-100) {
		if rates32(&w[0], &g[0], len(w), in, ratios, out); k.out.maxAbs < mostError {
			return
		}
	}
	ratesWide32(&w[0], &g[0], len(w), in, ratios, out)
}

// rate32 measures the errors of a chunk that has some and is estimated.
func (m *meter) rate32(c chunk, w, g []float32, t *total) {
	k := &m.buf.simd.rate
	exact := m.rule.exact()
	ratios := view[float32](bytesOf(m.buf.simd.ratios[:]))
	w, g, ratios = w[:c.n], g[:c.n], ratios[:c.n]
	m.above += int(k.out.above)
	m.below += int(k.out.below)
	m.maxULP = max(m.maxULP, uint64(k.out.maxULP))

	doubt := !exact && (k.out.least < math.Float32bits(tiny)-1 || m.rule.rtol*math.Sqrt(t.ww) > huge)
	if doubt || k.out.relative > 0 {
		m.relative32(w, g)
	}
	far := 0
	switch {
	case exact:
		far = int(k.out.above + k.out.below)
		m.hist[0] += c.n - far
		m.hist[len(m.hist)-1] += far
	case doubt || m.bins32(&ratios[0], &g[0], c.n+padding(c.n)):
		far = m.countExactly32(w, g)
	default:
		far = m.count32(c)
	}
	if far > 0 && m.firstFar < 0 {
		m.firstFar = c.start + m.firstFar32(w, g)
	}
	m.far += far
	m.worst32(c, w, g, ratios, t, doubt)
}

func padding(n int) int { return -n & (padTo - 1) }

// bins32 counts n ratios, and reports whether some are too close to an edge.
func (m *meter) bins32(ratios, g *float32, n int) bool {
	k := &m.buf.simd.rate
	switch {
	case m.rule.ulp > 0:
		count(&m.buf.simd.bins[0], n, &k.bins)
	case k.out.worst <= 1:
		k.bins = [8]uint64{}
		histogramLow32(ratios, n, g, &k.bins, &k.out.edge)
	default:
		histogram32(ratios, n, g, &k.bins, &k.out.edge)
	}
	return slices.Min(k.out.edge[:]) <= nearEdge
}

// count32 adds the bins and returns how many ratios are above 1.
func (m *meter) count32(c chunk) (far int) {
	k := &m.buf.simd.rate
	erring := int(k.out.above) + int(k.out.below)
	least := erring
	for i, count := range k.bins {
		m.hist[i+2] += int(count)
		least -= int(count)
		if i+2 > 5 {
			far += int(count)
		}
	}
	m.hist[0] += c.n - erring
	m.hist[1] += least
	return far
}

// ratio32 returns the error of an element and its error ÷ limit.
func (m *meter) ratio32(x, y float32) (err, ratio float64) {
	err = math.Abs(float64(y) - float64(x))
	ulp := 0.0
	if m.rule.ulp > 0 {
		ulp = float64(steps(ord32(x), ord32(y)))
	}
	return err, m.rule.ratio(err, math.Abs(float64(x)), ulp)
}

// countExactly32 does what count32 does, without estimates.
func (m *meter) countExactly32(w, g []float32) (far int) {
	for i, x := range w {
		_, r := m.ratio32(x, g[i])
		m.hist[bin(r)]++
		if r > 1 {
			far++
		}
	}
	return far
}

func (m *meter) firstFar32(w, g []float32) int {
	for i, x := range w {
		if _, r := m.ratio32(x, g[i]); r > 1 {
			return i
		}
	}
	return -1
}

func (m *meter) relative32(w, g []float32) {
	most := m.maxRel
	for i, x := range w {
		mag := math.Abs(float64(x))
		e := math.Abs(float64(g[i]) - float64(x))
		if e >= float64(most*mag)*(1-0x1p-50) && mag > 0 {
			most = max(most, e/mag)
		}
	}
	m.maxRel = most
}

// worst32 looks for a larger ratio where the estimates leave room for one,
// among the elements whose estimate is close to the largest.
func (m *meter) worst32(c chunk, w, g, ratios []float32, t *total, doubt bool) {
	k := &m.buf.simd.rate
	least := float32(0)
	switch {
	case m.rule.rtol == 0 && m.rule.ulp == 0 && t.maxAbs <= m.worstErr:
		return
	case m.rule.exact():
		m.worstError32(c, w, g)
		return
	case doubt || m.rule.ulp > 0 && k.out.maxULP >= 1<<31:
	case m.rule.ulp > 0 && float64(k.out.maxULP)/m.rule.ulp <= m.worst:
		return
	default:
		most := max(float64(k.out.worst), m.worst)
		if most >= 0x1p-100 {
			least = float32(most * (1 - slack))
		}
		if k.out.worst < least {
			return
		}
	}
	for i, r := range ratios {
		if r >= least {
			err, ratio := m.ratio32(w[i], g[i])
			m.worstOf(c.start+i, ratio, err)
		}
	}
}

// worstError32 looks for a larger error where equal values are asked.
func (m *meter) worstError32(c chunk, w, g []float32) {
	for i, x := range w {
		if err := math.Abs(float64(g[i]) - float64(x)); err > m.worstErr {
			m.worstOf(c.start+i, math.Inf(1), err)
		}
	}
}

// within reports whether every element of a chunk is sure to pass.
func (m *meter) within(c chunk) bool {
	if !useSIMD || m.opts.SignedZero {
		return false
	}
	same := ^uint64(0)
	if m.opts.NaNDiffers {
		same = 0
	}
	b := &m.buf.simd
	switch m.dtype {
	case tensor.F32:
		w, g := padded[float32](c.want, &b.w), padded[float32](c.got, &b.g)
		in := [4]uint32{math.Float32bits(below(m.rule.rtol)), math.Float32bits(below(m.rule.atol)), uint32(same), uint32(min(m.rule.ulp, math.MaxInt32))}
		if m.rule.ulp > 0 {
			return withinULP32(&w[0], &g[0], len(w), &in)
		}
		return within32(&w[0], &g[0], len(w), &in)
	case tensor.F64:
		w, g := padded[float64](c.want, &b.w), padded[float64](c.got, &b.g)
		return within64(&w[0], &g[0], len(w), &[2]float64{m.rule.rtol, m.rule.atol}, same)
	}
	return false
}

// below returns a float32 that is less than a tolerance by more than the
// relative error of an estimated limit.
func below(x float64) float32 {
	if x < 0x1p-100 {
		return 0
	}
	return float32(min(x, math.MaxFloat32) * (1 - slack))
}
