package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// longestReason bounds the texts of a subject about its sample inputs, in bytes.
const longestReason = 400

// OpInfo lists the entries of PyTorch's own sample inputs
// (torch.testing._internal.common_methods_invocations.op_db). The error says what
// keeps the subject from having them.
func (w *Worker) OpInfo() ([]backend.OpInfo, error) {
	e := encoder{buf: []byte(`....{"opinfo":{}}`)}
	var entries []backend.OpInfo
	err := w.askOpInfo(e.frame(), func(d *reader, key string) {
		if key != "entries" {
			d.skip()
			return
		}
		for ok := d.array(); ok; ok = d.more() {
			entries = append(entries, d.opInfo())
		}
	})
	return entries, err
}

// opInfo reads [name, [dtype, …], has calls to refuse].
func (r *reader) opInfo() backend.OpInfo {
	var entry backend.OpInfo
	i := 0
	for ok := r.array(); ok; ok = r.more() {
		switch i {
		case 0:
			entry.Name = r.string()
		case 1:
			for ok := r.array(); ok; ok = r.more() {
				if dt, err := tensor.ParseDType(r.string()); err == nil {
					entry.DTypes = append(entry.DTypes, dt)
				}
			}
		case 2:
			entry.Illegal, _ = r.plain().(bool)
		default:
			r.skip()
		}
		i++
	}
	return entry
}

// OpInfoCases returns the programs of an entry's samples in a dtype, or, where it
// is Invalid, of the calls that PyTorch refuses; and by reason how many are none.
func (w *Worker) OpInfoCases(entry int, dt tensor.DType, seed uint32) ([]*program.Program, map[string]int, error) {
	e := encoder{buf: []byte(`....{"opinfo":{"entry":`)}
	e.int(entry)
	e.raw(`,"seed":`)
	e.int(int(seed))
	if dt != tensor.Invalid {
		e.raw(`,"dtype":`)
		e.string(dt.String())
	}
	e.raw("}}")
	var programs []*program.Program
	left := map[string]int{}
	err := w.askOpInfo(e.frame(), func(d *reader, key string) {
		switch key {
		case "cases":
			for ok := d.array(); ok; ok = d.more() {
				p, err := program.Parse("opinfo", d.string())
				if err != nil {
					left[err.Error()]++
					continue
				}
				programs = append(programs, p)
			}
		case "left":
			for key, ok := d.object(); ok; key, ok = d.nextKey() {
				left[backend.Printable(key, longestReason)] += d.int()
			}
		default:
			d.skip()
		}
	})
	return programs, left, err
}

// askOpInfo sends a request for sample inputs, and gives the fields of the reply's
// object to read.
func (w *Worker) askOpInfo(frame []byte, read func(d *reader, key string)) error {
	ctx := context.Background()
	if err := w.start(ctx); err != nil {
		return err
	}
	reply, lost, err := w.roundTrip(ctx, frame)
	switch {
	case err != nil:
		return err
	case lost != nil:
		return w.fault(errors.New("it ended while its sample inputs were drawn"))
	}
	if err := valid(reply); err != nil {
		w.drop(true)
		return w.fault(err)
	}
	var refusal string
	d := reader{b: reply}
	for key, ok := d.object(); ok; key, ok = d.nextKey() {
		if key != "opinfo" || d.peek() != '{' {
			d.skip()
			continue
		}
		for key, ok := d.object(); ok; key, ok = d.nextKey() {
			if key == "error" {
				refusal = d.string()
			} else {
				read(&d, key)
			}
		}
	}
	switch {
	case d.err != nil:
		return w.fault(d.err)
	case refusal != "":
		return fmt.Errorf("%s: %s", w.info.Name, strings.TrimSpace(backend.Printable(refusal, longestReason)))
	}
	return nil
}
