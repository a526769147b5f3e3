package ops_test

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func TestSurvey(t *testing.T) {
	pat := os.Getenv("SURVEY")
	if pat == "" {
		t.Skip()
	}
	for _, d := range ops.Table().Defs() {
		if pat != "all" && !strings.Contains(","+pat+",", ","+d.ID()+",") {
			continue
		}
		fmt.Printf("## %s | %s | compose=%v random=%v\n", d.ID(), d.Sig, d.Compose != nil, d.Traits.Has(op.Random))
		if d.Sample == nil || d.Traits.Has(op.Random) {
			continue
		}
		hold, seen, claimed := map[string]int{}, map[string]int{}, map[string]int{}
		for key := range uint64(10) {
			call := sample(t, d, key, tensor.F64)
			metas, err := call.Infer()
			if err != nil {
				continue
			}
			sh, _ := call.Shardings()
			have := map[string]bool{}
			for _, s := range sh {
				have[argText(s, call)] = true
			}
			n := 0
			for _, args := range holdings(call.Args) {
				if n++; n > 600 {
					break
				}
				s := op.Sharding{Args: args, Results: []op.SBP{op.B}}
				if !s.Fits(call.Args, metas, 2) {
					continue
				}
				ks := argText(s, call)
				seen[ks]++
				if have[ks] {
					claimed[ks]++
					continue
				}
				if r, ok := infer(call, s, metas, key); ok {
					if allB(r) {
						continue
					}
					s.Results = r
					ks += fmt.Sprint(" -> ", r)
					hold[ks]++
				}
			}
		}
		var keys []string
		for k := range hold {
			keys = append(keys, k)
		}
		sort.Slice(keys, func(i, j int) bool { return hold[keys[i]] > hold[keys[j]] })
		for i, k := range keys {
			if i > 14 {
				break
			}
			base := k[:strings.Index(k, " -> ")]
			fmt.Printf("   %d/%d (claimed %d) %s\n", hold[k], seen[base], claimed[base], k)
		}
	}
}

func allB(r []op.SBP) bool {
	for _, s := range r {
		if s != op.B {
			return false
		}
	}
	return true
}

func argText(s op.Sharding, c *op.Call) string {
	out := ""
	names := c.Args.ArgNames()
	for i, v := range c.Args.AllValues() {
		out += fmt.Sprintf("%s%d:%s ", names[i], len(v.Shape()), s.Args[names[i]])
	}
	return out
}

func holdings(a op.Args) []map[string]op.SBP {
	all := []map[string]op.SBP{{}}
	names := a.ArgNames()
	for i, v := range a.AllValues() {
		ways := []op.SBP{op.B}
		for k, n := range v.Shape() {
			if n > 1 {
				ways = append(ways, op.S(k))
			}
		}
		if v.DType().IsDifferentiable() {
			ways = append(ways, op.P)
		}
		var next []map[string]op.SBP
		for _, w := range ways {
			for _, m := range all {
				c := map[string]op.SBP{}
				for k, x := range m {
					c[k] = x
				}
				if w != op.B {
					c[names[i]] = w
				}
				next = append(next, c)
			}
		}
		all = next
	}
	return all[1:]
}

func infer(call *op.Call, s op.Sharding, metas []op.Meta, key uint64) ([]op.SBP, bool) {
	var rs []op.SBP
	want, err := with(call, sameLayout).Execute()
	if err != nil {
		return nil, false
	}
	summands := map[op.Value][]*tensor.Tensor{}
	var parts [2][]*tensor.Tensor
	for rank := range 2 {
		local := s.Local(call, metas, 2, rank, func(v op.Value, sbp op.SBP) op.Value {
			x := v.(*tensor.Tensor)
			if sbp != op.P {
				return sameLayout(sbp.Piece(x, 2, rank))
			}
			if summands[v] == nil {
				summands[v] = split2(x, 2, key)
			}
			return summands[v][rank]
		})
		var err error
		func() {
			defer func() {
				if recover() != nil {
					err = fmt.Errorf("panic")
				}
			}()
			parts[rank], err = local.Execute()
		}()
		if err != nil {
			return nil, false
		}
	}
	for i := range want {
		cands := []op.SBP{op.B, op.P}
		for k := range want[i].Shape() {
			if want[i].Shape()[k] > 1 {
				cands = append(cands, op.S(k))
			}
		}
		ok := false
		for _, c := range cands {
			if i >= len(parts[0]) || i >= len(parts[1]) {
				return nil, false
			}
			if c == op.P && !want[i].DType().IsDifferentiable() && want[i].DType() != tensor.I64 {
				continue
			}
			got, err := c.Gather(want[i].Shape(), []*tensor.Tensor{parts[0][i], parts[1][i]})
			if err == nil && sameWithin(want[i], got, false) == nil {
				rs, ok = append(rs, c), true
				break
			}
		}
		if !ok {
			return nil, false
		}
	}
	return rs, true
}
