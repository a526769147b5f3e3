package graph

import "slices"

// order runs a node that frees at least the memory that it takes as soon as it
// can run; the others keep their order. An update of a parameter follows its
// gradient, so that gradients do not wait for each other.
func order(c *Code) (int, error) {
	s := &scheduler{lives: livesOf(c), users: c.users(), waits: map[*Node]int{}, readers: map[*Value]int{}, done: map[*Node]bool{}}
	for _, n := range c.Nodes {
		makers := map[*Node]bool{}
		for _, v := range n.Args() {
			makers[v.node] = true
		}
		s.waits[n] = len(makers)
		for _, r := range s.read(n) {
			s.readers[r]++
		}
	}
	moved := 0
	for _, n := range c.Nodes {
		if s.done[n] {
			continue
		}
		s.run(n)
		moved += s.early()
	}
	c.Nodes = s.nodes
	return moved, nil
}

type scheduler struct {
	lives
	users   map[*Value][]*Node
	waits   map[*Node]int  // nodes that make its arguments and did not run yet
	readers map[*Value]int // by root: nodes that read it and did not run yet
	ready   []*Node        // nodes that wait for none and did not run yet
	done    map[*Node]bool
	nodes   []*Node // in their new order
}

// read returns the roots of what a node reads.
func (s *scheduler) read(n *Node) []*Value {
	var roots []*Value
	for _, v := range n.Args() {
		if r := s.roots[v]; !slices.Contains(roots, r) {
			roots = append(roots, r)
		}
	}
	return roots
}

func (s *scheduler) run(n *Node) {
	s.done[n] = true
	s.nodes = append(s.nodes, n)
	for _, r := range s.read(n) {
		s.readers[r]--
	}
	told := map[*Node]bool{}
	for _, v := range n.Out {
		for _, m := range s.users[v] {
			if told[m] {
				continue
			}
			told[m] = true
			if s.waits[m]--; s.waits[m] == 0 {
				s.ready = append(s.ready, m)
			}
		}
	}
}

// early runs what is ready and frees as much as it takes, and returns how many
// nodes that were.
func (s *scheduler) early() int {
	count := 0
	for {
		s.ready = slices.DeleteFunc(s.ready, func(n *Node) bool { return s.done[n] })
		i := slices.IndexFunc(s.ready, s.frees)
		if i < 0 {
			return count
		}
		s.run(s.ready[i])
		count++
	}
}

// frees reports whether a node frees memory, at least as much as it takes.
func (s *scheduler) frees(n *Node) bool {
	net, freed := 0, 0
	for _, v := range n.Out {
		if s.roots[v] == v {
			net += v.bytes()
		}
	}
	for _, r := range s.read(n) {
		if s.readers[r] == 1 && !s.escapes[r] {
			freed += r.bytes()
		}
	}
	return freed > 0 && net <= freed
}
