package shrink

import (
	"context"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// unevenly reports whether the program splits its input's rows over ranks that do
// not divide them; without placements its seed decides, and it does.
func unevenly(p *program.Program) bool {
	all := placedInputs(p)
	if len(all) == 0 {
		return true
	}
	l := all[0]
	in := inputNamed(p, l.of)
	axis, split := l.sbp[0].Axis()
	return split && axis == 0 && len(in.Shape) > 0 && in.Shape[0] >= 3 && in.Shape[0]%l.placement.Hierarchy[0] != 0
}

// TestShrinkOverRanks: how an input lies is said by the program, as simply as it
// fails, and what is right beside it is told.
func TestShrinkOverRanks(t *testing.T) {
	for _, c := range []struct {
		name, want, ranks string
		faulty            func(p *program.Program) bool
	}{
		{"uneven pieces", `x_g = x.to_global(placement="cpu[0, 1]", sbp="S(0)")`, "wrong with 2 ranks, x S(0), 3 rows; right with 4 rows", unevenly},
		{"any pieces", `x_g = x.to_global(placement="cpu[0, 1]", sbp="S(0)")`, "wrong with 2 ranks, x S(0), 2 rows; right with x B", func(p *program.Program) bool {
			all := placedInputs(p)
			if len(all) == 0 {
				return true
			}
			axis, split := all[0].sbp[0].Axis()
			return split && axis == 0 && len(inputNamed(p, all[0].of).Shape) > 0
		}},
		{"four ranks", `x_g = x.to_global(placement="cpu[0, 1, 2, 3]", sbp="B")`, "wrong with 4 ranks, x B; right with 1 rank", func(p *program.Program) bool {
			all := placedInputs(p)
			return len(all) == 0 || len(all[0].placement.Ranks) == 4 && len(all[0].placement.Hierarchy) == 1
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := program.Parse("case.py", preamble+"case(\"c\", seed=1)\nx = tensor((7, 5), torch.float32, uniform(-1.0, 1.0, key=1))\na = torch.exp(x)\ny = torch.relu(a)\n")
			if err != nil {
				t.Fatal(err)
			}
			s := Subject{OverRanks: true, Judge: func(_ context.Context, p *program.Program) (*verdict.Record, error) {
				return judge(p, takesTensors(p) && calls(p, "torch.relu") && c.faulty(p)), nil
			}}
			result, err := Shrink(t.Context(), judge(p, true), s, DefaultBudget, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := body(result.Record.Program); !strings.Contains(got, c.want) || strings.Contains(got, "exp") {
				t.Errorf("minimal is\n%s", got)
			}
			if result.Ranks != c.ranks {
				t.Errorf("ranks: %q, want %q", result.Ranks, c.ranks)
			}
		})
	}
}
