package reffaults

import "plumb/internal/judge/verdict"

// Framework is one whose faults are listed.
type Framework struct {
	Name   string // of the subject
	Module string // by which Python imports it
	Setup  string // Python that runs before each proof
	Faults []verdict.CandidateFault
}

// Frameworks returns all whose faults are listed, PyTorch first.
func Frameworks() []Framework {
	torch := Framework{Name: "torch", Module: "torch", Setup: "import torch\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"}
	for _, f := range Faults {
		torch.Faults = append(torch.Faults, verdict.CandidateFault{KnownFault: f})
	}
	torch.Faults = append(torch.Faults, Graphs...)
	return append([]Framework{torch}, others...)
}
