package compare

// The passes of simd_amd64.s work on padded chunks of float32 and float64:
// elements beyond the end, and those that rule 5 decides, are zero on both
// sides. They change nothing that is measured but the count of elements without
// error.
//
// Whatever is reported is what fast finds without SIMD: counts, positions,
// maxima and sums, bit for bit, so results do not depend on the processor. For
// float64 every ratio is computed as fast computes it. For float32 ratios are
// estimated in float32, to a few units; an estimate that is close to an edge of
// the histogram, or to the largest ratio so far, is followed by the exact
// computation.

//go:generate go run -C ../../asmgen ./compare -out ../judge/compare/simd_amd64.s -stubs ../judge/compare/simd_stub_amd64.go -pkg compare
