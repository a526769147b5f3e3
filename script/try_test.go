package script

import (
	"fmt"
	"os"
	"plumb/choice"
	"testing"
)

func TestTry(t *testing.T) {
	src, _ := os.ReadFile("/tmp/try.py")
	f, err := Load("try.py", src)
	if err != nil {
		t.Fatal(err, "\n", err.(*Error).Excerpt())
	}
	fmt.Println(f.Notes)
	for _, x := range f.Tests() {
		for k := range uint64(2) {
			p, err := x.Draw(choice.New(k), Env{})
			if err != nil {
				fmt.Println("ERR", err)
				if e, ok := err.(*Error); ok {
					fmt.Println(e.Excerpt())
				}
				continue
			}
			fmt.Println(p.String())
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
