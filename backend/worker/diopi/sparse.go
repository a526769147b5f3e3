package diopi

import (
	"errors"
	"fmt"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// toSparse is the call by which a case of DIOPI's config has an argument in CSR layout.
const toSparse = "Tensor.to_sparse_csr"

// csr is a matrix in CSR layout, as PyTorch makes one: of indices in int64, without zeros.
type csr struct {
	rows, columns         int
	crow, indices, values *tensor.Tensor
}

func sparseOf(t *tensor.Tensor) (*csr, error) {
	if t.Dim() != 2 {
		return nil, errors.New("a matrix in CSR layout has two dimensions")
	}
	m := &csr{rows: t.Shape()[0], columns: t.Shape()[1]}
	starts := make([]int64, 1, m.rows+1)
	var indices []int64
	var values []complex128
	for i := range m.rows {
		for j := range m.columns {
			if v := t.At(i*m.columns + j); v != 0 {
				indices, values = append(indices, int64(j)), append(values, v)
			}
		}
		starts = append(starts, int64(len(indices)))
	}
	m.crow, m.indices = tensor.Of(tensor.I64, []int{len(starts)}, starts), tensor.Of(tensor.I64, []int{len(indices)}, indices)
	m.values = tensor.New(t.DType(), len(values))
	for i, v := range values {
		m.values.Set(i, v)
	}
	return m, nil
}

// sparse is a matrix in CSR layout that the call reads.
func (b *binding) sparse(m *csr) any {
	return program.Tuple{"csr", b.read(m.crow), b.read(m.indices), b.read(m.values), ints([]int{m.rows, m.columns})}
}

// madeSparse is the matrix that a call of a case makes of an input.
func madeSparse(name program.Ref, job *backend.Job) (*csr, error) {
	for _, call := range job.Program.Calls {
		if call.Target != toSparse || program.Ref(call.Result) != name || len(call.Args) == 0 {
			continue
		}
		if t := inputOf(call.Args[0], job); t != nil {
			return sparseOf(t)
		}
	}
	return nil, fmt.Errorf("%s is no input", name)
}
