package cli

import "errors"

// tied is the first argument where a program starts this one and passes it a pipe: when the pipe closes, that program is
// gone, and this one ends as it does on a signal. The npm package starts it like this where Node cannot put it into its own
// place (release/npm/rootbound.cjs). It is an argument and no variable, since servers would inherit that.
const tied = "__tied"

var errStarterGone = errors.New("the program that started this one is gone")
