package pathargs

import (
	"slices"

	"github.com/rootbound/rootbound/roots"
)

var (
	deleteVerbs = set{words: "delete remove rm rmdir unlink trash purge"}
	moveVerbs   = set{words: "move rename mv"}
	copyVerbs   = set{words: "copy cp duplicate"}
	writeVerbs  = set{words: "write edit create make mkdir append insert replace update modify patch save overwrite touch " +
		"export download generate convert render format apply init clone commit checkout reset merge rebase pull extract unzip " +
		"screenshot fix"}
	readVerbs = set{words: "read get list view show cat open search find grep stat info tree head tail describe diff status log " +
		"blame analyze analyse count compare hash upload lint load import query check"}

	fromWords   = set{words: "from source src old input original left template"}
	outputWords = set{words: "output out dest destination save"}
)

// need returns what a tool does at a path, as far as its name, the name of the argument and what the server says of it
// tell: reading when nothing does.
func need(toolName string, t *tool, argument string) roots.Access {
	verbs := words(toolName)
	arg := words(argument)
	has := func(list []string, w *set) bool { return slices.ContainsFunc(list, w.has) }
	isSource := has(arg, &fromWords)
	switch {
	case has(verbs, &moveVerbs):
		if has(arg, &outputWords) || slices.Contains(arg, "to") || slices.Contains(arg, "new") || slices.Contains(arg, "target") {
			return roots.Write
		}
		return roots.Delete
	case has(verbs, &deleteVerbs):
		return roots.Delete
	case has(verbs, &copyVerbs):
		if isSource {
			return roots.Read
		}
		return roots.Write
	case has(arg, &outputWords):
		return roots.Write
	case isSource:
		return roots.Read
	case has(verbs, &writeVerbs):
		return roots.Write
	case t != nil && t.readOnly != nil && !*t.readOnly && !has(verbs, &readVerbs):
		return roots.Write
	}
	return roots.Read
}
