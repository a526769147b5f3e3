package command

import (
	"github.com/spf13/pflag"

	"plumb/conform"
)

// conformLimits are what --tolerance of conform run says; the zero value is
// both.
type conformLimits struct {
	classes, config bool
	tolerance
}

// conformTolerances reads one.
func conformTolerances(to *conformLimits) pflag.Value {
	plain := tolerances(&tolerance{}).(*limited[tolerance])
	v := &limited[conformLimits]{to: to, kind: "limits", want: "classes, config, both, " + plain.want}
	v.parse = func(text string) (conformLimits, bool) {
		switch text {
		case "classes":
			return conformLimits{classes: true}, true
		case "config":
			return conformLimits{config: true}, true
		case "both":
			return conformLimits{}, true
		}
		t, ok := plain.parse(text)
		return conformLimits{tolerance: t}, ok
	}
	return v
}

// kit are the limits of the kit that judges.
func (l conformLimits) kit() conform.Limits {
	own := l.rtol != nil || l.byDType
	return conform.Limits{Config: l.config, Beside: !l.classes && !l.config && !own, RTol: l.rtol, ATol: l.atol, ByDType: l.byDType}
}
