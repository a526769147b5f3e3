package op

import (
	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// Law is how the results of a random operator are distributed, given its arguments.
type Law struct {
	// Support says in words what a result may be.
	Support string
	// Atoms says that the draws have few values, each of a probability of its
	// own; otherwise they are reals, rounded to the result's dtype.
	Atoms bool
	// Two says that a draw has two values, the lower of which begins at 0 and
	// the upper ends at 1.
	Two bool
	// Draws recovers from a result the independent draws behind it. Elements
	// that do not tell theirs are left out, and those that are certain. The
	// error names what is outside of the support.
	Draws func(out *tensor.Tensor) ([]Draw, error)
	// Slopes, where set, are the derivatives of the result's elements by those
	// of the operator's first argument, as far as the result tells them; NaN elsewhere.
	Slopes func(out *tensor.Tensor) []float64
}

// Draw is where one draw Z fell in its distribution: Below = P(Z < z) and
// Upto = P(Z ≤ z), z the value that it has. Of a rounded real they are the
// probabilities up to both ends of what rounds to z.
type Draw struct {
	At          int // the element of the result that tells it, in row-major order
	Below, Upto float64
}

// Random fills dst with the words of the call's random stream from position
// at on. The stream depends on the call's key alone.
func (r *Run) Random(dst []uint64, at int) {
	rng := choice.NewPhilox(r.Key)
	for i := range dst {
		u, v := rng.Pair(uint64(at+i) / 2)
		if (at+i)%2 == 1 {
			u = v
		}
		dst[i] = u
	}
}

// draw is the number of the random stream that a call repeats.
const draw = IntArg("draw")

// Keys gives the calls of random operators their keys, one after the other. A
// call whose signature has a parameter "draw" repeats the stream of the call
// of that number, so that a gradient meets the draws of its forward call.
type Keys struct {
	Seed  uint64
	next  int
	later []seeding // in the order of their calls
}

// seeding is a seed that holds from the call of a number on.
type seeding struct {
	from int
	seed uint64
}

// Reseed begins the streams of a seed: the calls that follow draw what those
// after another Reseed of the seed draw.
func (k *Keys) Reseed(seed uint64) { k.later = append(k.later, seeding{k.next, seed}) }

// Key returns the number and the key of a random operator's call.
func (k *Keys) Key(c *Call) (number int, key uint64) {
	if c.Args.Sig.Takes(draw) {
		number = c.Args.Int(draw)
	} else {
		number = k.Count()
	}
	held := seeding{0, k.Seed}
	for _, s := range k.later {
		if s.from <= number {
			held = s
		}
	}
	return number, choice.Derive(held.seed, uint64(number-held.from))
}

// Count returns the number of the next call.
func (k *Keys) Count() int {
	k.next++
	return k.next - 1
}
