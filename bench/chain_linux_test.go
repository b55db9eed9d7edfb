package main

import (
	"os"
	"testing"
)

// Every peer passes on what it is given, so that a ratio compares like with like.
func TestPeersPassEverythingOn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{self: self, home: t.TempDir(), root: t.TempDir()}
	for _, args := range [][]string{
		{self, "echo"},
		{self, "copy", self, "echo"},
		{self, "copy-blocking", self, "echo"},
		{self, "go-sdk", self, "echo"},
		{self, "edges", self, "echo"},
	} {
		peer := args[1]
		c, err := b.startChain(peer, peer != "go-sdk", args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1 << 10, 1 << 20} {
			for range 3 {
				if _, err := c.call(newCall(size, "/tmp/doc.go")); err != nil {
					t.Error(err)
				}
			}
		}
		if err := c.end(); err != nil {
			t.Errorf("%s: ending: %v\n%s", peer, err, &c.stderr)
		}
	}
}
