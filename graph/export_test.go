package graph

// FuseAlone is fuse for groups of one call too.
var FuseAlone = Pass{Name: "fuse", Run: func(c *Code) (int, error) { return fuseFrom(c, 1) }}
