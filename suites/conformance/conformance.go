// Package conformance holds Plumb's own conformance config, in the language of
// DIOPI's, and the functions that known networks call.
package conformance

import _ "embed"

// Models lists the functions of each network, for conform.LoadModels.
//
//go:embed models.py
var Models []byte
