package global

import (
	"slices"

	"plumb/op"
)

// candidate is a signature for the next dimension of a hierarchy. alone says that it,
// with those before it, is legal whatever the dimensions after it have; where it is
// not, they have to go on with a signature that the operator states over all of them.
type candidate struct {
	op.Sharding
	alone bool
}

// stated asks the operator for its signatures over the whole hierarchy.
func (l *launch) stated() error {
	if l.call.Def.NdSBP == nil || l.wholly() != "" {
		return nil
	}
	all, err := l.call.ShardingsOver(l.placement.Hierarchy)
	if l.halved() {
		all = slices.DeleteFunc(all, func(s []op.Sharding) bool { return slices.ContainsFunc(s, op.Sharding.Partial) })
	}
	l.joint = all
	return err
}

// keepAllowed drops stated signatures of which the runtime allows not every dimension.
func (l *launch) keepAllowed() {
	if l.Allows == nil {
		return
	}
	l.joint = slices.DeleteFunc(slices.Clone(l.joint), func(signature []op.Sharding) bool {
		for k, s := range signature {
			if shares(s) && !l.Allows(l.priced(s, k, l.call)) {
				return true
			}
		}
		return false
	})
}

// legal lists the signatures by which the ranks of dimension k may share all of the
// calls that the signatures before leave, everywhere first where it is legal.
func (l *launch) legal(k int, before []op.Sharding, alone bool, corners []*op.Call) []candidate {
	var all []candidate
	if alone {
		all = append(all, candidate{everywhere, true})
		halved := l.halved()
		for _, s := range common(corners, l.placement.Hierarchy[k]) {
			if !halved || !s.Partial() {
				all = append(all, candidate{s, true})
			}
		}
	}
	same := func(a, b op.Sharding) bool { return a.String() == b.String() }
	for _, s := range l.joint {
		known := slices.ContainsFunc(all, func(c candidate) bool { return same(c.Sharding, s[k]) })
		if !known && slices.EqualFunc(s[:k], before, same) {
			all = append(all, candidate{s[k], false})
		}
	}
	return all
}
