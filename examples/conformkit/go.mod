module conformkit

go 1.26.0

require plumb v0.0.0

require (
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	go.starlark.net v0.0.0-20260908191801-89a6a09411d5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace plumb => ../..
