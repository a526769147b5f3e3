package bundle

import (
	"fmt"
	"strings"
)

// specKind returns the backend of a spec: "torch" of "torch@cuda:/usr/bin/python3".
func specKind(spec string) string {
	kind, _, _ := strings.Cut(spec, ":")
	kind, _, _ = strings.Cut(kind, "@")
	return kind
}

// addScripts writes a file for each side that is a framework. Where PyTorch is
// neither, its file stands for the reference.
func (b *Bundle) addScripts(f *Finding, p *place) error {
	sides := []struct {
		role        string
		mine, other *Side
	}{{"reference", &f.Reference, &f.Candidate}, {"candidate", &f.Candidate, &f.Reference}}
	for _, s := range sides {
		switch s.mine.Framework() {
		case "native":
			if s.role == "reference" || s.mine.traced() {
				continue
			}
			if err := b.addNative(f, p, s.role); err != nil {
				return err
			}
		case "torch":
			if s.mine.traced() {
				continue
			}
			if err := b.addTorch(f, p, s.mine, s.other, s.role); err != nil {
				return err
			}
		}
	}
	if _, ok := b.m.Sides["torch"]; !ok {
		torch := Side{Spec: "torch"}
		if err := b.addTorch(f, p, &torch, &f.Candidate, "reference"); err != nil {
			return err
		}
	}
	if err := b.addRanks(f, p); err != nil {
		return err
	}
	b.m.Sides["plumb"] = script{File: programFile, Role: "candidate"}
	b.m.Run = append(b.m.Run, "plumb run "+programFile)
	return nil
}

func (b *Bundle) addTorch(f *Finding, p *place, mine, other *Side, role string) error {
	as, s := "torch", script{File: "repro_torch.py", Role: role, Python: pythonOf(mine)}
	if _, taken := b.m.Sides[as]; taken {
		as, s.File = "torch_"+role, "repro_torch_"+role+".py"
	}
	w := &pythonFile{f: f, p: p, mine: mine, other: other, isReference: role == "reference", stored: gotFile, outcome: f.Got, own: f.Expected}
	if !w.isReference {
		w.stored, w.outcome, w.own = expectedFile, f.Expected, f.Got
	}
	text, err := w.text()
	if err != nil {
		return fmt.Errorf("%s: %w", s.File, err)
	}
	b.files[s.File], b.m.Sides[as] = text, s
	b.m.Run = append(b.m.Run, "python3 "+s.File)
	return nil
}

// pythonOf returns the Python that ran a side; "" when it is not known.
func pythonOf(s *Side) string {
	if kind, path, ok := strings.Cut(s.Spec, ":"); ok && kind == "torch" {
		path = strings.TrimPrefix(strings.TrimPrefix(path, s.Info.Own()), ":")
		if path != "" {
			return path
		}
	}
	return s.Info.Features["executable"]
}

// Script returns the name of a side's file; false when the bundle has none.
func (b *Bundle) Script(as string) (string, bool) {
	s, ok := b.m.Sides[as]
	return s.File, ok
}

// Scripts returns the names of the files by side.
func (b *Bundle) Scripts() map[string]string {
	all := map[string]string{}
	for as, s := range b.m.Sides {
		all[as] = s.File
	}
	return all
}

// Python returns the Python that ran a side when the finding was made; "" when
// it is not known.
func (b *Bundle) Python(as string) string { return b.m.Sides[as].Python }

// Title is one line about the finding.
func (b *Bundle) Title() string {
	v := b.Verdict
	s := string(v.Word)
	if v.Kind != "" {
		s += " (" + string(v.Kind) + ")"
	}
	if v.Reason != "" {
		s += ": " + v.Reason
	}
	if b.m.Count > 1 {
		s += fmt.Sprintf("; %d cases", b.m.Count)
	}
	if b.m.Proof != nil {
		s += "; " + b.m.Proof.String()
	}
	return s
}
