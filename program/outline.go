package program

// Part is a stretch of a program's calls that its test made in one call of its
// own: of a module or of a graph that the test defines.
type Part struct {
	Graph           bool   // else a module
	Name            string // "encoder"; may be empty
	Class           string
	From, To        int // its calls are those from From to before To
	Inputs, Outputs []Ref
}

// Outline tells of the test that made a program what the program does not say.
type Outline struct {
	Parts []Part         // inner ones before those around them
	Names map[Ref]string // of modules: the attributes that hold them, such as "encoder.0"
}
