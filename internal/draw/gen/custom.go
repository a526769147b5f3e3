package gen

// Custom returns a generator that a function draws: what it draws from are
// kids, which take the types that the generator is given, and which are drawn
// anew with it. It counts as leaves alternatives of "|".
func Custom(name string, leaves int, draw func(c *Case) (any, error), kids ...any) *Node {
	return newNode(custom{name, leaves, draw}, packAll(kids)...)
}

type custom struct {
	called string
	leaves int
	f      func(c *Case) (any, error)
}

func (r custom) name() string                       { return r.called }
func (r custom) draw(c *Case, _ *Node) (any, error) { return r.f(c) }
