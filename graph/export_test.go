package graph

// FuseAlone is fuse for groups of one call too.
var FuseAlone = Pass{Name: "fuse", Run: func(c *Code) (int, error) { return fuseFrom(c, 1) }}

// Heads returns how many calls fused loops follow.
func Heads(c *Compiled) int {
	count := 0
	for _, n := range c.Code.Nodes {
		if n.headed {
			count++
		}
	}
	return count
}

// Epilogue is the pass of that name.
var Epilogue = Pass{Name: "epilogue", Run: epilogue}

// Spreads returns how many arguments of fused calls are written out.
func Spreads(c *Compiled) int {
	count := 0
	for _, n := range c.Code.Nodes {
		for _, m := range n.body {
			for _, s := range m.spreads {
				if s != nil {
					count++
				}
			}
		}
	}
	return count
}
