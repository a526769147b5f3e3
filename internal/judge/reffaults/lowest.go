package reffaults

import (
	"slices"

	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// lowestQuotients end the process: the lowest number of a dtype by -1 is none of it,
// and the processor's division of 32 and 64 bits traps. (Bytes are divided in 32.)
var lowestQuotients = slices.Concat(each([]string{"fmod", "remainder", "floor_divide"}, func(target string) verdict.KnownFault {
	return lowestByMinusOne("torch <2.15", target, "", "TARGET(x, -1)")
}), each([]string{"mod", "imod"}, func(target string) verdict.KnownFault {
	return lowestByMinusOne("torch <2.15", target, "", "remainder(x, -1)")
}), each([]string{"floordiv", "ifloordiv"}, func(target string) verdict.KnownFault {
	return lowestByMinusOne("torch <2.15", target, "", "floor_divide(x, -1)")
}), each([]string{"div", "divide"}, func(target string) verdict.KnownFault {
	return lowestByMinusOne("torch <2.15", target, "floor", `TARGET(x, -1, rounding_mode="floor")`)
}), each([]string{"div", "divide"}, func(target string) verdict.KnownFault {
	return lowestByMinusOne("torch", target, "trunc", `TARGET(x, -1, rounding_mode="trunc")`)
}))

func lowestByMinusOne(reference, target, mode, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: reference,
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Crashes},
		Signal:    "SIGFPE",
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Calls, func(c program.Call) bool { return divides(&c, mode) }) &&
				slices.ContainsFunc(p.Inputs, hasLowest)
		},
		Reason: "the lowest number of an integer dtype by -1 ends the process",
		Proof:  of(target, "x = torch.full((2,), -2**63)\ndies(lambda: torch."+call+")"),
	}
}

func divides(c *program.Call, mode string) bool {
	given, _ := argumentNamed(c, "rounding_mode")
	return mode == "" || given == mode
}

func hasLowest(in program.Input) bool {
	lowest := map[tensor.DType]float64{tensor.I32: -1 << 31, tensor.I64: -1 << 63}
	v, ok := lowest[in.DType]
	return ok && hasElement(&in, func(x float64) bool { return x == v })
}
