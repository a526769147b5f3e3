// Package deps holds the import lattice of the module: which package may
// import which. Its test keeps the code to it.
package deps

// Lattice lists, for each package, the packages of this module that it may
// import. A package that is not listed may not exist.
const Lattice = `
tensor:
internal/draw/choice:
internal/safetensors:       tensor
op:                         tensor internal/draw/choice
internal/arg:               op
internal/kernel:            tensor
device/sim:                 tensor op
ops:                        internal/arg tensor op internal/kernel internal/truth internal/autograd
internal/truth:             tensor
program:                    tensor internal/draw/choice op internal/variate
internal/inplace:           internal/arg tensor op
internal/autograd:          internal/arg tensor op program internal/inplace
internal/eager:             tensor op internal/autograd
graph:                      tensor internal/draw/choice internal/kernel op internal/autograd internal/eager nn optim internal/where
api:                        internal/arg tensor op internal/autograd internal/eager ops nn graph internal/draw/choice
nn:                         internal/arg tensor op internal/draw/choice internal/variate
internal/gradcheck:         tensor internal/draw/choice op program internal/eager
internal/campaign/bandit:
internal/campaign/coverage:
optim:                      internal/arg tensor op internal/eager nn
internal/draw/opcase:       tensor internal/arg internal/draw/choice op program internal/inplace
internal/mutants:           internal/arg tensor op ops nn program
internal/draw/gen:          tensor internal/draw/choice op program
backend:                    tensor op program
backend/native:             tensor op program graph nn backend internal/interp internal/draw/choice global
internal/interp:            global internal/arg tensor internal/draw/choice op program internal/autograd internal/eager graph internal/inplace nn optim backend internal/refusal
backend/worker:             tensor op program backend internal/refusal internal/scratch
backend/worker/diopi:       tensor op nn program backend backend/worker internal/eager internal/interp
internal/refusal:            backend
backend/recorded:           tensor program backend internal/safetensors internal/refusal
backend/derive:             tensor op program graph nn backend internal/interp
backend/open:               internal/spell op nn backend backend/derive backend/native backend/worker backend/worker/diopi backend/recorded baselines device/sim tensor backend/beside
internal/draw/script:       global nn tensor internal/draw/choice op program internal/draw/gen backend ops optim
backend/beside:             tensor program backend
conform:                    op ops nn program tensor backend backend/native baselines internal/judge internal/judge/verdict internal/conform/baseline internal/conform/config internal/conform/diopi
internal/conform/config:    internal/spell
internal/conform/diopi:     tensor program internal/draw/choice internal/conform/config
internal/conform/baseline:  internal/scratch internal/campaign/drive tensor op program backend backend/recorded internal/safetensors internal/judge/compare internal/judge/verdict internal/refusal
internal/conform/telling:   tensor op program backend internal/conform/diopi
internal/judge/compare:     tensor op backend
internal/judge:             internal/refusal tensor op nn program backend internal/judge/compare internal/judge/reffaults internal/judge/rounding internal/judge/verdict
internal/judge/verdict:     internal/refusal tensor internal/draw/choice op program backend internal/judge/compare
internal/judge/rounding:    tensor op program internal/autograd internal/eager graph nn backend internal/interp internal/judge/compare
internal/judge/reffaults:   tensor op ops program backend internal/judge/compare internal/judge/verdict
internal/judge/proof:
internal/judge/margins:     op program backend internal/judge/compare internal/judge/verdict
internal/find/bundle:       global internal/refusal internal/judge tensor internal/draw/choice op program backend internal/safetensors internal/judge/compare internal/judge/verdict internal/module
internal/opcheck:           global tensor internal/draw/choice internal/eager op program internal/gradcheck internal/draw/opcase backend backend/native nn internal/campaign internal/judge internal/judge/compare internal/judge/verdict
check:                      op internal/judge/verdict internal/gotest internal/opcheck
internal/campaign/drive:
internal/campaign:          internal/campaign/drive tensor internal/draw/choice program backend internal/judge internal/judge/verdict internal/find/shrink internal/find/finding
internal/find/shrink:       global tensor internal/draw/choice op program backend internal/judge/compare internal/judge/verdict
internal/find/accepted:     backend tensor program internal/find/shrink internal/judge/verdict
internal/find/finding:      tensor program internal/find/shrink internal/judge/verdict
internal/campaign/store:    internal/campaign/report
internal/campaign/pages:    backend internal/campaign/report internal/campaign/store internal/judge/verdict
internal/campaign/report/picture:tensor internal/judge/compare internal/judge/verdict
internal/campaign/report/page:tensor internal/judge/verdict internal/find/finding internal/campaign/report internal/campaign/report/picture
internal/campaign/report:   internal/campaign/report/picture tensor program internal/scratch backend internal/judge/compare internal/judge/verdict internal/find/shrink internal/find/finding
internal/campaign/fleet:    internal/campaign/ledger
internal/campaign/ledger:   internal/campaign/bandit internal/campaign/report internal/campaign/store internal/judge/verdict
suites:
baselines:
.:                          tensor internal/onekernel internal/draw/choice op ops internal/draw/gen program api backend internal/campaign internal/gotest internal/where backend/native internal/find/bundle internal/safetensors nn internal/module
internal/deps:
internal/ranks:             tensor
global:                     tensor op graph internal/ranks
internal/variate:
internal/project:
internal/spell:
internal/scratch:
internal/stopwatch:
internal/parquet:
internal/module:
internal/publish:           internal/module
internal/where:             internal/module
internal/gotest:            internal/find/shrink internal/find/finding op nn program backend backend/open backend/recorded internal/campaign internal/campaign/report internal/judge internal/judge/verdict
internal/onekernel:         internal/spell internal/campaign/report/picture tensor internal/draw/choice internal/draw/opcase op ops nn program backend backend/worker internal/judge internal/judge/compare internal/judge/verdict internal/stopwatch
cmd/command:                global internal/opcheck internal/scratch internal/onekernel internal/campaign/drive tensor internal/draw/choice op internal/draw/opcase internal/gradcheck internal/campaign/coverage graph internal/eager ops nn program backend backend/open backend/beside backend/native backend/worker backend/recorded internal/draw/script internal/judge internal/judge/compare internal/judge/proof internal/judge/reffaults internal/judge/verdict internal/campaign internal/judge/margins internal/find/shrink internal/find/finding internal/find/accepted internal/find/bundle internal/campaign/report internal/campaign/store internal/campaign/pages suites baselines internal/kernel internal/mutants internal/spell conform internal/conform/baseline internal/module internal/conform/config internal/conform/diopi internal/stopwatch internal/conform/telling internal/campaign/report/page internal/project internal/campaign/bandit internal/campaign/ledger internal/campaign/fleet internal/wheel internal/typed internal/parquet
internal/foreign:           tensor op internal/autograd
internal/wheel:
cmd/shared:                 tensor op internal/foreign
cmd/plumblib:               cmd/shared op ops
cmd/plumb:                  cmd/command ops
internal/typed:             tensor op
internal/opgen:             internal/arg internal/typed tensor internal/draw/choice op internal/draw/opcase program ops nn backend backend/native internal/module internal/conform/config internal/conform/diopi internal/draw/script suites internal/conform/telling
`
