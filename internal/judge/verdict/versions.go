package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Versions are those of a subject in which a fault is: its name, and bounds that
// all hold.
type Versions struct {
	name  string
	least []int // nil without a bound
	below []int // the first version beyond; nil without a bound
}

// ParseVersions reads a claim such as "torch", "torch >=2", "torch >=1.13 <2.9".
func ParseVersions(text string) (Versions, error) {
	name, rest, _ := strings.Cut(text, " ")
	v := Versions{name: name}
	if name == "" || strings.ContainsAny(name, "<>=") {
		return v, fmt.Errorf("%q: want a name and bounds, such as torch >=1.13 <2.9", text)
	}
	for bound := range strings.FieldsSeq(rest) {
		to, number := &v.least, strings.TrimPrefix(bound, ">=")
		if number == bound {
			to, number = &v.below, strings.TrimPrefix(bound, "<")
		}
		parts, whole := release(number)
		if number == bound || !whole || *to != nil {
			return v, fmt.Errorf("%q: %q is no bound, such as >=1.13 or <2.9, or the second of its kind", text, bound)
		}
		*to = parts
	}
	if v.least != nil && v.below != nil && slices.Compare(v.least, v.below) >= 0 {
		return v, fmt.Errorf("%q: no version is in it", text)
	}
	return v, nil
}

// Has reports whether a subject, named with its version such as "torch
// 2.9.1+cu128", is one of them. A pre-release counts as its release, as
// Debian calls its 1.13 1.13.0a0; what has no version is in no bounds.
func (v Versions) Has(subject string) bool {
	name, version, _ := strings.Cut(subject, " ")
	if name != v.name {
		return false
	}
	number, _ := release(version)
	if number == nil {
		return v.least == nil && v.below == nil
	}
	return slices.Compare(number, v.least) >= 0 && (v.below == nil || slices.Compare(number, v.below) < 0)
}

// release returns the numbers with which a version begins, without zeros at the
// end, and whether they are all of it; nil where there is none.
func release(version string) (numbers []int, whole bool) {
	whole = true
	for part := range strings.SplitSeq(version, ".") {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if digits >= 0 {
			part, whole = part[:digits], false
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return trimmed(numbers), false
		}
		if numbers = append(numbers, n); !whole {
			break
		}
	}
	return trimmed(numbers), whole
}

// trimmed returns the numbers without zeros behind the first.
func trimmed(numbers []int) []int {
	for len(numbers) > 1 && numbers[len(numbers)-1] == 0 {
		numbers = numbers[:len(numbers)-1]
	}
	return numbers
}

// concerns reports whether a fault is claimed of a subject, named with its version.
func (f *KnownFault) concerns(subject string) bool {
	v, err := ParseVersions(f.Reference)
	return err == nil && v.Has(subject)
}
