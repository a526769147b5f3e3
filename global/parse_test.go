package global

import "testing"

func FuzzPlacement(f *testing.F) {
	for _, text := range []string{"cpu[0, 1]", "cpu[[0, 1], [2, 3]]", "cpu[[0],[1,2]]", "cpu[0,[1]]", "cpu[]", "[", "cpu[[[[[[[[[[0", "cuda[3, 1, 2]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlacement(text)
		if err != nil {
			return
		}
		q, err := ParsePlacement(p.String())
		if err != nil || !p.Equal(q) {
			t.Fatalf("%q is %s, which reads as %s, %v", text, p, q, err)
		}
	})
}

func FuzzSBP(f *testing.F) {
	for _, text := range []string{"S(0)", "B", "P", "[S(0), B]", "[S(0)", "S(-1)", "S(99999999999)", "[]", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSBP(text)
		if err != nil {
			return
		}
		again, err := ParseSBP(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is %s, which reads as %s, %v", text, s, again, err)
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{"cpu[0,1]": "cpu[0, 1]", "cpu[[0, 1], [2, 3]]": "cpu[[0, 1], [2, 3]]", "cpu[[0], [1]]": "cpu[[0], [1]]"} {
		if p, err := ParsePlacement(text); err != nil || p.String() != want {
			t.Errorf("%q is %s, %v", text, p, err)
		}
	}
	for _, text := range []string{"cpu", "[0]", "cpu[0, 0]", "cpu[[0, 1], [2]]", "cpu[0, [1]]", "cpu[[0], 1]", "cpu[]", "cpu[0]x", "cpu[-1]"} {
		if p, err := ParsePlacement(text); err == nil {
			t.Errorf("%q is %s", text, p)
		}
	}
}
