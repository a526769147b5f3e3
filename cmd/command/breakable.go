package command

import (
	"io"
	"net"
	"sync"
)

// breakable is a network to one address that can be cut: connections end, and new ones
// end as soon as they begin.
type breakable struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// newBreakable listens on an address of its own.
func newBreakable(to string) (*breakable, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &breakable{listener: l, to: to, open: map[net.Conn]bool{}}
	go b.serve()
	return b, nil
}

func (b *breakable) address() string { return b.listener.Addr().String() }

func (b *breakable) serve() {
	for {
		here, err := b.listener.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", b.to)
		if err != nil || !b.keep(here, there) {
			_ = here.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				b.end(here, there)
			}()
		}
	}
}

// keep takes both ends of a connection, unless the network is cut.
func (b *breakable) keep(ends ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range ends {
		if b.isCut {
			_ = c.Close()
		} else {
			b.open[c] = true
		}
	}
	return !b.isCut
}

func (b *breakable) end(ends ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range ends {
		_ = c.Close()
		delete(b.open, c)
	}
}

// cut cuts the network, or mends it.
func (b *breakable) cut(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isCut = is; is {
		for c := range b.open {
			_ = c.Close()
		}
		clear(b.open)
	}
}

func (b *breakable) close() {
	if b != nil {
		_ = b.listener.Close()
		b.cut(true)
	}
}
