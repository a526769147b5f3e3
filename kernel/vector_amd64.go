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
		sum: sumAVX, squares: squaresAVX, max: maxAVX, expSum: expSumAVX, subtract: subtractAVX,
		affine: affineAVX, affineRow: affineRowAVX,
		gradSums: gradSumsAVX, gradSumsWeighted: gradSumsWeightedAVX,
		project: projectAVX, projectWeighted: projectWeightedAVX, addColumns: addColumnsAVX, tapRow: tapRowAVX,
	}
}
