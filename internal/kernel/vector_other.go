//go:build !amd64

package kernel

func availablePasses() vectorPasses { return vectorPasses{} }
