package script

import (
	"strings"
	"testing"

	"plumb/internal/draw/choice"
)

const ownGenerators = `
import random as pyrandom

class even(generator):
    def __init__(self, limit):
        super().__init__([])
        self.limit = limit
    def _calc_value(self):
        return 2 * pyrandom.randint(1, self.limit)
    def _calc_size(self):
        return 3

class shifted(generator):
    def __init__(self, low, by):
        self.low = pack(low)
        self.by = by
        super().__init__([self.low])
    def _generate(self):
        return self.low.value() + self.by
`

// TestOwnGenerators draws generators that the file defines: once a case, anew
// with eval, by their size among alternatives, and with their parts' type.
func TestOwnGenerators(t *testing.T) {
	src := ownGenerators + body(`
x = random_tensor(ndim=2, dim0=even(4), dim1=shifted(random(1, 3), 10))
n, m = x.shape
assert n in (2, 4, 6, 8) and m in (11, 12)
e = even(50)
assert e.value() == e.value() and (e + 1).value() == e.value() + 1
assert len({e.eval() for i in range(20)}) > 1
assert isinstance(e, generator) and e.limit == 50
assert (even(1) | 1).size() == 4 and shifted(1, 2).size() == 1
ones = [(even(1) | 1).value() for i in range(400)].count(1)
assert 60 < ones < 140, ones
assert shifted(random(), 0.5).to(float).value() < 7
return torch.add(x, x)`)
	for key := range uint64(5) {
		if _, err := loadTest(t, src).Draw(choice.New(key), Env{Signatures: toySigs}); err != nil {
			t.Errorf("key %d: %v", key, err)
		}
	}
}

// TestConditionsDrawGenerators gives both branches their turn.
func TestConditionsDrawGenerators(t *testing.T) {
	seen := map[string]int{}
	test := loadTest(t, body("x = random_tensor()\nb = random_bool()\nif b:\n    assert b.value()\n    return torch.relu(x)\nassert not b.value()\nreturn torch.add(x, x)"))
	for key := range uint64(40) {
		p, err := test.Draw(choice.New(key), Env{Signatures: toySigs})
		if err != nil {
			t.Fatal(err)
		}
		seen[p.Calls[0].Target]++
	}
	if seen["torch.relu"] < 10 || seen["torch.add"] < 10 {
		t.Errorf("drew %v", seen)
	}
}

// TestClassMistakes names what a class has not.
func TestClassMistakes(t *testing.T) {
	for src, want := range map[string]string{
		"class A:\n    pass\n" + body("A(1)"):    "A() takes no arguments",
		"class A:\n    pass\n" + body("A().f()"): "an A has no attribute f",
		"class A(generator):\n    def __init__(self):\n        super().__init__([])\n" + body("A().value()"): "the generator A has no method _calc_value",
	} {
		_, err := loadTest(t, src).Draw(choice.New(1), Env{Signatures: toySigs})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", src, err, want)
		}
	}
}
