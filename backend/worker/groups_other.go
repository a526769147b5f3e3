//go:build !linux

package worker

// group is nothing where there are no control groups.
type group struct{}

func newGroup() *group                                   { return &group{} }
func (*group) join(int, int64)                           {}
func (*group) ready(int64) int64                         { return 0 }
func (*group) hold(int64)                                {}
func (*group) counts() (killings, refusals, tasks int64) { return 0, 0, 0 }
func (*group) members() []int                            { return nil }
func (*group) end()                                      {}
func limitFiles(int, int64)                              {}
func leaveGroups()                                       {}

// Sweep removes nothing: there are no control groups.
func Sweep() {}

// Bounds says which bounds of its cases the kernel holds, for who looks at what is here.
func (w *Worker) Bounds() string { return "time alone" }
