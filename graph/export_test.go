package graph

// FuseAlone is fuse for groups of one call too.
var FuseAlone = Pass{Name: "fuse", Run: func(c *Code) (int, error) { return fuseFrom(c, 1) }}

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
