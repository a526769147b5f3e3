package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number is a float64 whose JSON form also has "inf", "-inf" and "nan".
type Number float64

// MarshalJSON writes a JSON number, or a string for what JSON cannot say.
func (n Number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte(`"nan"`), nil
	case math.IsInf(v, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-inf"`), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		switch s {
		case "nan":
			*n = Number(math.NaN())
		case "inf":
			*n = Number(math.Inf(1))
		case "-inf":
			*n = Number(math.Inf(-1))
		default:
			return fmt.Errorf("%q is not a number", s)
		}
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// String prints n with three significant digits.
func (n Number) String() string {
	return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(float64(n), 'g', 3, 64)), "+")
}
