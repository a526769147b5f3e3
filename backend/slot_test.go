package backend

import (
	"slices"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

// filled returns an outcome with a one-element tensor at each place, of the
// place's index plus first.
func filled(first float64, at ...Place) *Outcome {
	o := &Outcome{}
	for i, p := range at {
		t := tensor.New(tensor.F32)
		t.Set(0, complex(first+float64(i), 0))
		o.Add(p, t)
	}
	return o
}

// value returns the element of a one-element tensor, -1 for none.
func value(t *tensor.Tensor) float64 {
	if t == nil {
		return -1
	}
	return t.Float(0)
}

// named has the owners of the slots below.
var named = &program.Program{
	Inputs: []program.Input{{Name: "x"}, {Name: "w"}, {Name: "m"}},
	Calls:  []program.Call{{Result: "y"}, {Result: "u"}, {Result: "z"}},
}

// TestPlacesAreOrdered: the places of two outcomes are told once each, by part,
// then call, then owner, whatever the order in which they were filled; what one
// side alone has is told too, and an owner that the program lacks is not.
func TestPlacesAreOrdered(t *testing.T) {
	want := []Place{
		{Part: PartValue, Owner: "y"},
		{Part: PartValue, Owner: "z"},
		{Part: PartChange, Call: 1, Owner: "w"},
		{Part: PartChange, Call: 2, Owner: "x"},
		{Part: PartState, Owner: "m", Name: "weight"},
		{Part: PartState, Owner: "m", Name: "bias"},
		{Part: PartGrad, Owner: "x"},
		{Part: PartGrad, Owner: "w"},
		{Part: PartGrad, Owner: "y"},
		{Part: PartParamGrad, Owner: "m", Name: "weight"},
		{Part: PartSecondGrad, Owner: "x"},
		{Part: PartStep, Owner: "m", Name: "weight"},
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	one := filled(0, Place{Part: PartState, Owner: "m", Name: "weight"}, Place{Part: PartState, Owner: "m", Name: "bias"}, Place{Part: PartGrad, Owner: "nobody"})
	if got := Places(named, one, filled(0, backwards...)); !slices.Equal(got, want) {
		t.Errorf("the places are\n%v, want\n%v", got, want)
	}
	if got := Places(named, &Outcome{}, &Outcome{}); len(got) != 0 {
		t.Errorf("outcomes without slots have the places %v", got)
	}
	for _, p := range parts {
		if got := Places(named, filled(0, Place{Part: p, Owner: "x"})); len(got) != 1 || got[0].Part != p {
			t.Errorf("the places of a slot of the part %s are %v", p, got)
		}
	}
}

// TestSidesAreWalkedInStep: at each place both sides give their own tensor,
// however each is ordered, and nil where one has none.
func TestSidesAreWalkedInStep(t *testing.T) {
	y, x, w := Place{Part: PartValue, Owner: "y"}, Place{Part: PartGrad, Owner: "x"}, Place{Part: PartGrad, Owner: "w"}
	first, second := filled(10, y, x), filled(20, w, x, y)
	var got [][2]float64
	for _, at := range Places(named, first, second) {
		got = append(got, [2]float64{value(first.At(at)), value(second.At(at))})
	}
	if want := [][2]float64{{10, 22}, {11, 21}, {-1, 20}}; !slices.Equal(got, want) {
		t.Errorf("the sides have %v, want %v", got, want)
	}
	absent := &Outcome{}
	absent.Add(x, nil)
	if !absent.Has(PartGrad) || absent.Grad("x") != nil {
		t.Error("a gradient that did not arrive has no slot, or a tensor")
	}
}

// TestPlacesThatLookAlike: call, part and name tell slots of one owner apart.
func TestPlacesThatLookAlike(t *testing.T) {
	alike := []Place{
		{Part: PartChange, Owner: "x"}, {Part: PartChange, Call: 1, Owner: "x"},
		{Part: PartGrad, Owner: "x"}, {Part: PartSecondGrad, Owner: "x"},
		{Part: PartState, Owner: "x", Name: "a"}, {Part: PartParamGrad, Owner: "x", Name: "a"}, {Part: PartState, Owner: "x", Name: "b"},
	}
	o := filled(0, alike...)
	for i, at := range alike {
		if got := value(o.At(at)); got != float64(i) {
			t.Errorf("slot %d, %+v, holds %v", i, at, got)
		}
	}
	state := o.Of(PartState, "x")
	if len(state) != 2 || state[0].Name != "a" || state[1].Name != "b" || value(state[1].Tensor) != 6 {
		t.Errorf("the state of x is %v", state)
	}
	if got := alike[4].String() + " " + alike[2].String(); got != "x.a x" {
		t.Errorf("the places are called %q", got)
	}
}

// TestSlotsAreReplacedInCopies: With and Without leave the outcome as it was.
func TestSlotsAreReplacedInCopies(t *testing.T) {
	y, x, z := Place{Part: PartValue, Owner: "y"}, Place{Part: PartGrad, Owner: "x"}, Place{Part: PartValue, Owner: "z"}
	o := filled(1, y, x)
	other := filled(7, z).At(z)
	replaced, added, less := o.With(y, other), o.With(z, other), o.Without(Part.IsGradient)
	for _, c := range []struct {
		what      string
		o         *Outcome
		slots     int
		y, x, z   float64
		gradients bool
	}{
		{"the outcome", o, 2, 1, 2, -1, true},
		{"with another y", replaced, 2, 7, 2, -1, true},
		{"with a z", added, 3, 1, 2, 7, true},
		{"without gradients", less, 1, 1, -1, -1, false},
	} {
		if len(c.o.Slots) != c.slots || value(c.o.At(y)) != c.y || value(c.o.At(x)) != c.x || value(c.o.At(z)) != c.z || c.o.Has(PartGrad) != c.gradients {
			t.Errorf("%s: %v", c.what, c.o.Slots)
		}
	}
}
