package nn

import (
	"fmt"
	"math"

	"plumb/internal/draw/choice"
	"plumb/internal/variate"
	"plumb/op"
	"plumb/tensor"
)

// Initial draws the elements that a parameter of the shape has at first: the same for
// the same key, on every machine.
type Initial func(shape []int, key uint64) []float64

// Uniform draws from [low, high).
func Uniform(low, high float64) Initial {
	return func(shape []int, key uint64) []float64 {
		out := make([]float64, tensor.NumElements(shape))
		variate.Uniforms(out, wordsOf(out, key), low, high)
		return out
	}
}

// Normal draws from the normal distribution.
func Normal(mean, deviation float64) Initial {
	return func(shape []int, key uint64) []float64 {
		out := make([]float64, tensor.NumElements(shape))
		variate.Normals64(out, wordsOf(out, key), false)
		for i := range out {
			out[i] = mean + deviation*out[i]
		}
		return out
	}
}

func wordsOf(out []float64, key uint64) []uint64 {
	words := make([]uint64, len(out)+len(out)%2)
	choice.NewPhilox(key).Words(words, 0)
	return words[:len(out)]
}

// KaimingUniform draws from ±√(6 / ((1 + a²)·fan)), fan the inputs of an output: He et
// al., "Delving deep into rectifiers" (2015), as PyTorch's kaiming_uniform_ has it.
func KaimingUniform(a float64) Initial {
	return scaledBy(func(in, _ float64) Initial { b := math.Sqrt(6 / ((1 + a*a) * in)); return Uniform(-b, b) })
}

// KaimingNormal is KaimingUniform with normal draws of the same variance.
func KaimingNormal(a float64) Initial {
	return scaledBy(func(in, _ float64) Initial { return Normal(0, math.Sqrt(2/((1+a*a)*in))) })
}

// XavierUniform draws from ±gain·√(6 / (inputs of an output + outputs of an input)):
// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
// networks" (2010), as PyTorch's xavier_uniform_ has it.
func XavierUniform(gain float64) Initial {
	return scaledBy(func(in, out float64) Initial { b := gain * math.Sqrt(6/(in+out)); return Uniform(-b, b) })
}

// XavierNormal is XavierUniform with normal draws of the same variance.
func XavierNormal(gain float64) Initial {
	return scaledBy(func(in, out float64) Initial { return Normal(0, gain*math.Sqrt(2/(in+out))) })
}

// BiasOf draws what PyTorch's layers give the bias that goes with a weight of the shape:
// from ±1/√fan, fan the inputs of an output.
func BiasOf(weight []int) Initial {
	return func(shape []int, key uint64) []float64 {
		in, _ := fans(weight)
		b := 1 / math.Sqrt(in)
		return Uniform(-b, b)(shape, key)
	}
}

// scaledBy is an Initial by how many inputs an output has, and outputs an input.
func scaledBy(of func(in, out float64) Initial) Initial {
	return func(shape []int, key uint64) []float64 {
		in, out := fans(shape)
		return of(in, out)(shape, key)
	}
}

// fans counts the inputs of an output and the outputs of an input of a weight, whose
// first two dimensions are outputs and inputs.
func fans(shape []int) (in, out float64) {
	if len(shape) < 2 {
		panic(fmt.Sprintf("nn: a weight of shape %v has no inputs and outputs: it needs two dimensions", shape))
	}
	field := float64(tensor.NumElements(shape[2:]))
	return float64(shape[1]) * field, float64(shape[0]) * field
}

// Draw sets the parameters and buffers that have an Initial and no value yet, by a key.
func (m *Module) Draw(key uint64) {
	for i, s := range m.slots {
		if s.Initial == nil || m.values[s.Name] != nil {
			continue
		}
		t := tensor.New(s.DType, s.Shape...)
		for e, v := range s.Initial(s.Shape, choice.Derive(key, uint64(i))) {
			t.Set(e, complex(v, 0))
		}
		m.values[s.Name] = op.Value(t)
	}
	for i, c := range m.Children {
		c.Draw(choice.Derive(key, uint64(len(m.slots)+i)))
	}
}

// Must returns a definition that modules can be made of without a table: that of a
// user's module. It panics where the definition is not complete.
func Must(d *Def) *Def {
	if _, err := NewTable(d); err != nil {
		panic(err)
	}
	return d
}
