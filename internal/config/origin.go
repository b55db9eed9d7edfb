package config

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/rootbound/rootbound/internal/splice"
)

// Origin says where a value comes from: a place in a file, or a word for what is no file ("--root", "default"). The zero
// Origin is that of a value nobody gave.
type Origin struct {
	File string
	Pos  splice.Pos
	Word string
}

// String returns "file:line", or the word.
func (o Origin) String() string {
	if o.File == "" {
		return o.Word
	}
	return o.File + ":" + strconv.Itoa(o.Pos.Line)
}

// Setting is a value with its origin.
type Setting[T any] struct {
	Value  T
	Origin Origin
}

// Given reports whether somebody gave the value.
func (s Setting[T]) Given() bool { return s.Origin != Origin{} }

// Error is a fault of a configuration file.
type Error struct {
	File string
	Pos  splice.Pos
	Msg  string
}

// Error returns "file:line:column: message".
func (e *Error) Error() string {
	if e.Pos == (splice.Pos{}) {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%s: %s", e.File, e.Pos, e.Msg)
}

// UsageError is a fault of the command line: what cannot be understood, or cannot go together.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e UsageError) Unwrap() error { return e.Err }

func (o Origin) errorf(format string, args ...any) error {
	if o.File == "" {
		return errors.New(o.Word + ": " + fmt.Sprintf(format, args...))
	}
	return &Error{File: o.File, Pos: o.Pos, Msg: fmt.Sprintf(format, args...)}
}
