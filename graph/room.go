package graph

import (
	"sync"

	"plumb/tensor"
)

// roomStep is how far apart the storages of layouts begin. They overlap:
// nobody reads or writes their elements.
const roomStep = 16

// leastRoom is from how many bytes on layouts lie in addresses that all builders
// share, which take no memory: as part of the heap they would count as live.
const leastRoom = 1 << 20

// shared are the addresses. Those that became too few stay, since layouts lie there.
var shared struct {
	sync.Mutex
	room []byte
}

// roomFor returns addresses for storages of up to so many bytes, at least twice as many,
// so that they are no builder's twice: it asks again when it needs more than is left of
// what it was given, which is more than half.
func roomFor(size int) []byte {
	if size >= leastRoom {
		shared.Lock()
		defer shared.Unlock()
		if len(shared.room) < 2*size {
			shared.room = addresses(4 * size)
		}
		if shared.room != nil {
			return shared.room
		}
	}
	return tensor.Unset(tensor.U8, []int{max(2*size, 1<<14)}, nil).Storage()
}
