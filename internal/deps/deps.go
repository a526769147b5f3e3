// Package deps holds the import lattice of the module: which package may
// import which. Its test keeps the code to it.
package deps

// Lattice lists, for each package, the packages of this module that it may
// import. A package that is not listed may not exist.
const Lattice = `
tensor:
choice:
safetensors:      tensor
op:               tensor choice
kernel:           tensor
ops:              tensor op kernel autograd
exact:            tensor
program:          tensor choice op internal/variate
inplace:          tensor op
autograd:         tensor op program inplace
eager:            tensor op autograd
graph:            tensor choice kernel op autograd eager nn optim internal/where
api:              tensor op autograd eager ops nn
nn:               tensor op
gradcheck:        tensor choice op program eager
coverage:
optim:            tensor op eager nn
opcase:           tensor choice op program inplace
internal/mutants: tensor op ops nn program
gen:              tensor choice op program
backend:          tensor op program
backend/native:   tensor choice op program autograd eager graph inplace nn backend compare
backend/worker:   tensor op program backend
backend/recorded: tensor program backend safetensors
backend/named:    op nn backend backend/native backend/worker backend/recorded baselines
script:           tensor choice op program gen backend
conform:          tensor choice op ops nn program backend backend/native campaign compare known verdict conform/baseline baselines internal/spell
conform/baseline: tensor op program backend backend/recorded safetensors compare verdict
compare:          tensor op
verdict:          tensor choice op program exact backend compare
known:            tensor op ops program compare verdict
margins:          op program compare verdict
repro:            tensor choice op program backend safetensors compare verdict
check:            tensor choice op program gradcheck opcase backend backend/native nn campaign compare verdict internal/gotest
campaign:         tensor choice op program backend compare verdict shrink finding
shrink:           tensor choice op program backend compare verdict
knownlist:        backend tensor program shrink verdict
finding:          tensor program shrink verdict
store:
report:           backend compare verdict shrink finding
suites:
suites/conformance:
baselines:
.:                tensor choice op ops gen program api backend campaign internal/gotest internal/where
internal/deps:
internal/variate: tensor
internal/spell:
internal/where:
internal/gotest:  shrink finding op nn program backend backend/named backend/native backend/recorded campaign known report verdict
cmd/plumb:        tensor choice op opcase gradcheck coverage graph eager ops nn program backend backend/named backend/native backend/worker backend/recorded known script compare verdict campaign margins shrink finding knownlist repro report store suites baselines kernel internal/mutants internal/spell conform conform/baseline suites/conformance
internal/opgen:   tensor choice op opcase program ops nn backend backend/native conform
`
