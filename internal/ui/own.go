package ui

import (
	"net"
)

// ownListener takes connections of our own user only, where the system says whose they are.
type ownListener struct {
	net.Listener
	few *few
}

func (l *ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := own(c); err != nil {
			l.few.tell("connection", "a connection to the page was refused: %v", err)
			c.Close()
			continue
		}
		return c, nil
	}
}
