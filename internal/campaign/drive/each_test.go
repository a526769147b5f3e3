package drive

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestEach: what is computed in any order is handed on in that of the items.
func TestEach(t *testing.T) {
	release := make(chan bool)
	var got []int
	err := Each(t.Context(), 2, []int{3, 1, 2}, func(i int) int {
		if i == 3 {
			<-release // until the next item is done
		} else if i == 1 {
			close(release)
		}
		return i * i
	}, func(v int) { got = append(got, v) })
	if err != nil || !slices.Equal(got, []int{9, 1, 4}) {
		t.Error(got, err)
	}
}

func TestEachEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	err := Each(ctx, 1, make([]int, 100), func(int) int {
		if count++; count == 3 {
			cancel()
		}
		return 0
	}, nil)
	if !errors.Is(err, context.Canceled) || count != 3 {
		t.Error(count, err)
	}
}
