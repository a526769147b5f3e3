package config

import "slices"

// LoadModels reads the models of a file: a dict, in Python or YAML, from the
// name of a model to the list of the functions that it calls. The error is an
// *Error.
func LoadModels(name string, src []byte) ([]*Model, error) {
	s, err := readSource(name, src)
	if err != nil {
		return nil, err
	}
	var out []*Model
	for _, key := range s.root.Keys() {
		functions, err := wantStrings(place{s, []step{{key: key}}}, s.root.Get(key))
		if err != nil {
			return nil, err
		}
		slices.Sort(functions)
		out = append(out, &Model{key, slices.Compact(functions)})
	}
	return out, nil
}
