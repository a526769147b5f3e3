package command

import "golang.org/x/sys/cpu"

// cpuFeatures are those of this machine that choose among Plumb's loops, or
// among PyTorch's.
func cpuFeatures() []string {
	var out []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"popcnt", cpu.X86.HasPOPCNT}, {"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA}, {"f16c", cpu.X86.HasF16C}, {"avx512f", cpu.X86.HasAVX512F},
		{"asimd", cpu.ARM64.HasASIMD}, {"sve", cpu.ARM64.HasSVE},
	} {
		if f.has {
			out = append(out, f.name)
		}
	}
	return out
}
