package clientconf

import (
	"fmt"

	"github.com/rootbound/rootbound/internal/splice"
)

// Amend begins an edit with a text in the place of the file's: what mends a file that its client cannot read. It has to be
// one that the client can.
func (f *File) Amend(text []byte) (*Draft, error) {
	if !f.Client.Writable || f.Place.Format.Grammar == Shell {
		return nil, fmt.Errorf("%q: %s", f.Path, f.Client.ReadOnly)
	}
	doc, err := splice.Parse(text, f.Place.Format.Grammar.splice())
	if err != nil {
		return nil, fmt.Errorf("%s:%w", f.Path, err)
	}
	return &Draft{f, doc}, nil
}

// Remove takes keys out of the entry of s, as far as they are there.
func (d *Draft) Remove(s *Server, keys ...string) error {
	return d.change(s, func(doc *splice.Doc) (*splice.Doc, error) {
		for _, key := range keys {
			p := join(s.path, key)
			if _, there := doc.Find(p); !there {
				continue
			}
			var err error
			if doc, err = doc.Delete(p); err != nil {
				return nil, err
			}
		}
		return doc, nil
	})
}
