module plumb

go 1.26.0

require golang.org/x/sys v0.49.0

require go.starlark.net v0.0.0-20260908191801-89a6a09411d5 // indirect
