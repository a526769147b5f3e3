package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// wire is a result as it travels: store.Case leaves out of its JSON what is not a
// number there, or is told in other units.
type wire struct {
	*plain
	Worst     []*float64      `json:"worst"` // of each case; null where nothing was compared
	Took      []time.Duration `json:"took"`
	Reference []time.Duration `json:"reference"`
}

type plain Result

// MarshalJSON writes all of a result.
func (r Result) MarshalJSON() ([]byte, error) {
	w := wire{plain: (*plain)(&r)}
	for i := range r.Cases {
		c := &r.Cases[i]
		var worst *float64
		if !math.IsNaN(c.Worst) {
			finite := max(min(c.Worst, math.MaxFloat64), -math.MaxFloat64)
			worst = &finite
		}
		w.Worst, w.Took, w.Reference = append(w.Worst, worst), append(w.Took, c.Elapsed), append(w.Reference, c.Reference)
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (r *Result) UnmarshalJSON(text []byte) error {
	w := wire{plain: (*plain)(r)}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	if n := len(r.Cases); len(w.Worst) != n || len(w.Took) != n || len(w.Reference) != n {
		return fmt.Errorf("the result of unit %d has %d cases and the limits of %d", r.Unit, n, len(w.Worst))
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Elapsed, c.Reference, c.Worst = w.Took[i], w.Reference[i], math.NaN()
		if w.Worst[i] != nil {
			c.Worst = *w.Worst[i]
		}
	}
	return nil
}
