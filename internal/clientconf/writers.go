package clientconf

import (
	"os"
	"slices"
)

// Writers are the programs besides the client that write the file over, by what tells that they are there.
func (f *File) Writers(h Host) map[*Client]string {
	found := map[*Client]string{}
	for _, c := range clients {
		if f.Place.Scope != User || !slices.Contains(c.Writes, f.Client.ID) {
			continue
		}
		for _, p := range c.Places {
			for _, at := range h.locate(p) {
				if _, err := os.Stat(at.path); err == nil {
					found[c] = at.path
				}
			}
		}
	}
	return found
}

// Written returns the first of the clients that has no files of its own and writes those of others.
func Written(ids []string) (*Client, bool) {
	for _, id := range ids {
		if c, ok := Lookup(id); ok && len(c.Writes) > 0 {
			return c, true
		}
	}
	return nil, false
}
