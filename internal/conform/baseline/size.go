package baseline

import (
	"slices"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// inputBytes is the size of the inputs of a program.
func inputBytes(p *program.Program) int64 {
	var n int64
	for i := range p.Inputs {
		in := &p.Inputs[i]
		n += int64(tensor.NumElements(in.Shape)) * int64(in.DType.Size())
	}
	return n
}

// Elements is the number of elements of a job's inputs and of an outcome.
func Elements(job *backend.Job, o *backend.Outcome) int {
	n := 0
	for _, t := range job.Inputs {
		n += t.Len()
	}
	for _, t := range tensorsOf(o) {
		n += t.Len()
	}
	return n
}

// ResultBytes is the size of the tensors of an outcome.
func ResultBytes(o *backend.Outcome) int64 {
	var n int64
	for _, t := range tensorsOf(o) {
		n += int64(t.Len() * t.DType().Size())
	}
	return n
}

// runsOf cuts a list into runs of at most so many elements and so many bytes;
// one that is larger is a run of its own.
func runsOf[T any](list []T, most int, bytes int64, size func(*T) int64) [][]T {
	var out [][]T
	start, sum := 0, int64(0)
	for i := range list {
		n := size(&list[i])
		if i > start && (i-start == most || sum+n > bytes) {
			out = append(out, list[start:i])
			start, sum = i, 0
		}
		sum += n
	}
	if start < len(list) {
		out = append(out, list[start:])
	}
	return slices.Clip(out)
}
