package worker

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestTrim: what a large case has touched stays where it is no more than is kept, and
// goes back beyond that.
func TestTrim(t *testing.T) {
	m, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	const mega = 1 << 20
	if err := m.resize(keepMemory + 64*mega); err != nil {
		t.Fatal(err)
	}
	held := func() int64 {
		var s unix.Stat_t
		if err := unix.Fstat(int(m.file.Fd()), &s); err != nil {
			t.Fatal(err)
		}
		return s.Blocks * 512
	}
	touch := func(from, n int64) {
		if err := unix.Fallocate(int(m.file.Fd()), 0, from, n); err != nil {
			t.Skip(err)
		}
		m.release()
	}
	if touch(keepMemory, 16*mega); held() < 16*mega {
		t.Errorf("%d bytes are held of 16 MiB that are few", held())
	}
	if touch(0, keepMemory); held() > keepMemory {
		t.Errorf("%d bytes are held, more than %d", held(), keepMemory)
	}
}
