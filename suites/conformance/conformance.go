// Package conformance holds Plumb's own conformance config, in the language of
// DIOPI's, and the functions that known networks call.
package conformance

import _ "embed"

// Models lists the functions of each network, for conform.LoadModels.
//
//go:embed models.py
var Models []byte

// Config is a config of every operator of Plumb's table, for conform.Load.
//
//go:embed plumb.py
var Config []byte
