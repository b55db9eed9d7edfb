package pathargs

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// kind is what an argument's name says about its value.
type kind uint8

const (
	kindOther     kind = iota
	kindPath           // a file or a directory
	kindAmbiguous      // perhaps one
	kindURL            // an address, which may be a file: URI
	kindFree           // text for people or for other programs
)

// name is an argument's name, understood.
type name struct {
	kind   kind
	plural bool // of paths: the value may list several
}

// understand reads a name by its last words, in camel case or with any separators.
func understand(s string) name {
	w := words(s)
	if len(w) == 0 {
		return name{}
	}
	last := w[len(w)-1]
	before := ""
	if len(w) > 1 {
		before = w[len(w)-2]
	}
	switch {
	case isPathWord(last):
		if (last == "path" || last == "paths") && notOfFiles.has(before) {
			return name{}
		}
		return name{kindPath, strings.HasSuffix(last, "s") || last == "directories"}
	case isPathWord(before) && afterPath.has(last):
		return name{kindPath, strings.HasSuffix(last, "s")}
	case freeWords.has(last):
		return name{kind: kindFree}
	case last == "url" || last == "urls" || last == "href":
		return name{kind: kindURL}
	case ambiguousWords.has(last) || len(w) == 1 && last == "name":
		return name{kind: kindAmbiguous}
	}
	// pathInProject, dir_for_assets
	if i := slices.IndexFunc(w, isPathWord); i >= 0 && i+1 < len(w) && prepositions.has(w[i+1]) {
		return name{kindPath, false}
	}
	return name{}
}

// isPathWord also says yes to words written together: outputfile, destdir.
func isPathWord(w string) bool {
	if w == "cwd" || w == "glob" || w == "globs" {
		return true
	}
	if unlikeFiles.has(w) {
		return false
	}
	for _, end := range pathEndings {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

var pathEndings = []string{
	"path", "paths", "file", "files", "filename", "filenames", "pathname", "pathnames", "dirname", "dirnames",
	"dir", "dirs", "directory", "directories", "folder", "folders",
}

var (
	unlikeFiles = set{words: "profile profiles xpath xpaths jsonpath jsonpaths jmespath nadir"}
	// Paths in documents, programs and addresses.
	notOfFiles = set{words: "name json x key node url uri api http request object property symbol query xml css dom route endpoint " +
		"graph field attribute element selector critical career learning"}
	afterPath      = set{words: "name names uri uris url urls location locations list spec arg args param"}
	prepositions   = set{words: "in to of from for at relative inside within under on"}
	ambiguousWords = set{words: "from to source sources src destination destinations dest dst root roots uri uris"}
	freeWords      = set{words: "content contents text texts body message messages msg description desc query queries prompt prompts " +
		"code sql oldtext newtext oldstr newstr oldstring newstring str string snippet comment comments summary title " +
		"instruction instructions question questions answer answers thought thoughts reason reasoning note notes html css " +
		"markdown script command commands cmd regex regexp search find replacement replace diff patch statement expression " +
		"explanation observation observations caption subject label labels markup keyword keywords"}
)

// set is a set of words, which is made when it is asked for the first time.
type set struct {
	words string // with blanks between them
	once  sync.Once
	all   map[string]bool
}

func (s *set) has(word string) bool {
	s.once.Do(func() {
		s.all = map[string]bool{}
		for w := range strings.FieldsSeq(s.words) {
			s.all[w] = true
		}
	})
	return s.all[word]
}

// words cuts a name at separators and between "aB" and "ABc", in lower case.
func words(s string) []string {
	list := make([]string, 0, 4)
	start := -1 // of the word that has begun
	var last rune
	for i, c := range s {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			if start >= 0 {
				list, start = append(list, fold(s[start:i])), -1
			}
		case start < 0:
			start = i
		case unicode.IsUpper(c) && (unicode.IsLower(last) || unicode.IsDigit(last) ||
			unicode.IsUpper(last) && startsLower(s[i+utf8.RuneLen(c):])):
			list, start = append(list, fold(s[start:i])), i
		}
		last = c
	}
	if start >= 0 {
		list = append(list, fold(s[start:]))
	}
	// A number at the end counts copies: path2, file_1.
	for len(list) > 1 && isIndex(list[len(list)-1]) {
		list = list[:len(list)-1]
	}
	if n := len(list); n > 0 {
		if cut := strings.TrimRight(list[n-1], "0123456789"); cut != "" {
			list[n-1] = cut
		}
	}
	return list
}

func startsLower(s string) bool {
	c, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(c)
}

// fold makes one of the letters that a decoder may take for one another ("ſ" and "s", the Kelvin sign and "k").
func fold(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf {
			return strings.ToLower(strings.ToUpper(s))
		}
	}
	return strings.ToLower(s)
}
