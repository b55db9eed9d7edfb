// Package script is what the clients of these tests are told to do, and how they say what came of it.
package script

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
)

// Plan is what a client does: the roots it has (nil: it declares none), what it answers to an elicitation, whether it has
// nobody to ask, and its steps.
type Plan struct {
	Roots   []string       `json:"roots,omitzero"`
	Content map[string]any `json:"content,omitempty"`
	Nobody  bool           `json:"nobody,omitempty"`
	Steps   []Step         `json:"steps"`
}

// Step is one thing a client does. Only the fields that its kind names count.
type Step struct {
	// Do is the kind: list (everything the server offers), call (a tool), until (the same
	// again, until the result has Text), parallel (Steps at once), roots (these are the
	// client's now), await (a notification), listen (to changes of tools, where the era asks for it), level (of log
	// messages), read and subscribe (a resource), prompt, complete.
	Do           string         `json:"do"`
	Tool         string         `json:"tool,omitempty"`
	Prompt       string         `json:"prompt,omitempty"`
	Arguments    map[string]any `json:"arguments,omitempty"`
	Progress     bool           `json:"progress,omitempty"` // ask for progress
	Cancel       bool           `json:"cancel,omitempty"`   // cancel the call when progress comes
	Text         string         `json:"text,omitempty"`
	Log          string         `json:"log,omitempty"` // level of log messages
	Steps        []Step         `json:"steps,omitempty"`
	Roots        []string       `json:"roots,omitzero"`
	Notification string         `json:"notification,omitempty"`
	URI          string         `json:"uri,omitempty"`
}

// Print writes v as a line of JSON with sorted names, and long strings as what they hash to.
func Print(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(b, &plain); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(shorten(plain))
}

func shorten(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > 1000 {
			return fmt.Sprintf("%d bytes, sha256 %x", len(v), sha256.Sum256([]byte(v)))
		}
	case map[string]any:
		for k := range v {
			v[k] = shorten(v[k])
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i])
		}
	}
	return v
}
