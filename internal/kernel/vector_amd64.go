package kernel

func availablePasses() vectorPasses {
	if !hasFMA {
		return vectorPasses{}
	}
	return vectorPasses{
		add: addAVX, sub: subAVX, mul: mulAVX, div: divAVX, pow: powAVX, maximum: maximumAVX, minimum: minimumAVX,
		abs: absAVX, neg: negAVX, sqrt: sqrtAVX, relu: reluAVX,
		exp: expAVX, exp2: exp2AVX, expm1: expm1AVX, sigmoid: sigmoidAVX, silu: siluAVX, mish: mishAVX,
		tanh: tanhAVX, sinh: sinhAVX, cosh: coshAVX, erf: erfAVX, erfc: erfcAVX, gelu: geluAVX,
		geluTanh: geluTanhAVX, log: logAVX, log2: log2AVX, log10: log10AVX, log1p: log1pAVX, logSigmoid: logSigmoidAVX,
		asinh: asinhAVX, acosh: acoshAVX, atanh: atanhAVX, asin: asinAVX, acos: acosAVX, atan: atanAVX,
		rsqrt: rsqrtAVX, sin: sinAVX, cos: cosAVX, tan: tanAVX,
		exp64: exp64AVX, expm1Of64: expm1Of64AVX, sigmoid64: sigmoid64AVX, silu64: silu64AVX, tanh64: tanh64AVX, sinh64: sinh64AVX,
		cosh64: cosh64AVX, log64: log64AVX, log2Of64: log2Of64AVX, log10Of64: log10Of64AVX, log1pOf64: log1pOf64AVX, logSigmoid64: logSigmoid64AVX,
		asinh64: asinh64AVX, acosh64: acosh64AVX, atanh64: atanh64AVX, pow64: pow64AVX,
		sum: sumAVX, squares: squaresAVX, max: maxAVX, expSum: expSumAVX, subtract: subtractAVX,
		affine: affineAVX, affineRow: affineRowAVX,
		gradSums: gradSumsAVX, gradSumsWeighted: gradSumsWeightedAVX,
		project: projectAVX, projectWeighted: projectWeightedAVX, addColumns: addColumnsAVX, tapRow: tapRowAVX,
	}
}
