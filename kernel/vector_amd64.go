package kernel

func availablePasses() vectorPasses {
	if !hasFMA {
		return vectorPasses{}
	}
	return vectorPasses{
		add: addAVX, sub: subAVX, mul: mulAVX, div: divAVX, pow: powAVX, maximum: maximumAVX, minimum: minimumAVX,
		abs: absAVX, neg: negAVX, sqrt: sqrtAVX, relu: reluAVX,
		exp: expAVX, sigmoid: sigmoidAVX, tanh: tanhAVX, erf: erfAVX, gelu: geluAVX, geluTanh: geluTanhAVX, log: logAVX,
		sum: sumAVX, squares: squaresAVX, max: maxAVX, expSum: expSumAVX, subtract: subtractAVX,
		affine: affineAVX, affineRow: affineRowAVX,
		gradSums: gradSumsAVX, gradSumsWeighted: gradSumsWeightedAVX,
		project: projectAVX, projectWeighted: projectWeightedAVX, addColumns: addColumnsAVX, tapRow: tapRowAVX,
	}
}
