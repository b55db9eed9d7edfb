//go:build !unix

package verify

func fifo(*place) error   { return errSkip("there are no FIFOs here") }
func socket(*place) error { return errSkip("there are no such sockets here") }
func device(*place) error { return errSkip("there are no such devices here") }
