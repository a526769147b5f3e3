package main

import (
	"plumb/conform"
	"plumb/conform/baseline"
)

// conformCases are the cases of a config, as far as pick takes them, to record.
func conformCases(c *conform.Config, seed uint64, pick func(function string) bool) []baseline.Case {
	var list []baseline.Case
	for one := range c.Cases() {
		if !pick(one.Function) {
			continue
		}
		atol, rtol := one.Tolerance()
		list = append(list, baseline.Case{
			Name: one.Name, Function: one.Function, ATol: atol, RTol: rtol,
			Programs: func() ([]baseline.Variant, error) { return conformPrograms(one, seed) },
		})
	}
	return list
}

// conformPrograms are the variants of a case.
func conformPrograms(c *conform.Case, seed uint64) ([]baseline.Variant, error) {
	p, err := c.Program(seed)
	if err != nil {
		return nil, err
	}
	variants := []baseline.Variant{{Program: p}}
	switch p, ok, err := c.InPlace(seed); {
	case err != nil:
		return nil, err
	case ok:
		variants = append(variants, baseline.Variant{Name: "inplace", Program: p})
	}
	return variants, nil
}
