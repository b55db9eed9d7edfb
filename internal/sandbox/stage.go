package sandbox

import "os"

// Argument is the only argument of this program when it is a stage: it has to call Enter then.
const Argument = "__confine"

// Stage is a program that is about to be started confined. It is for one start.
type Stage struct {
	// Path and Args are what has to be started, with an empty environment.
	Path string
	Args []string
	// Files are to be inherited, the first as descriptor 3.
	Files []*os.File

	confiner
}
