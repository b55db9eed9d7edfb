package verify

import (
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// role is what a tool is for.
type role string

const (
	roleRead   role = "read"
	roleMany   role = "read several"
	roleMedia  role = "read media"
	roleList   role = "list"
	roleSizes  role = "list with sizes"
	roleTree   role = "tree"
	roleSearch role = "search names"
	roleGrep   role = "search content"
	roleStat   role = "stat"
	roleWrite  role = "write"
	roleAppend role = "append"
	roleEdit   role = "edit"
	roleMkdir  role = "make a directory"
	roleMove   role = "move"
	roleCopy   role = "copy"
	roleDelete role = "delete"
)

// names are what tools of a role are called, without what stands between the words. The first that a server has counts.
var names = map[role][]string{
	roleRead:   {"readtextfile", "readfile", "fileread", "fsread", "getfilecontents", "getfilecontent", "getfile", "openfile", "viewfile", "catfile", "read", "cat", "view"},
	roleMany:   {"readmultiplefiles", "readfiles", "readmanyfiles", "getfiles"},
	roleMedia:  {"readmediafile", "readimage", "readbinaryfile"},
	roleList:   {"listdirectory", "listdir", "listfiles", "readdirectory", "readdir", "listfolder", "list", "ls", "dir"},
	roleSizes:  {"listdirectorywithsizes"},
	roleTree:   {"directorytree", "gettree", "filetree", "tree"},
	roleSearch: {"searchfiles", "findfiles", "filesearch", "globfiles", "glob", "find"},
	roleGrep:   {"searchcontent", "searchcode", "grepfiles", "contentsearch", "grep"},
	roleStat:   {"getfileinfo", "fileinfo", "filestat", "statfile", "getmetadata", "stat"},
	roleWrite:  {"writefile", "filewrite", "fswrite", "createfile", "savefile", "putfile", "writetextfile", "write"},
	roleAppend: {"appendfile", "appendtofile", "append"},
	roleEdit:   {"editfile", "strreplace", "replaceinfile", "fileedit", "edit"},
	roleMkdir:  {"createdirectory", "makedirectory", "createfolder", "mkdir"},
	roleMove:   {"movefile", "renamefile", "movepath", "rename", "move", "mv"},
	roleCopy:   {"copyfile", "copypath", "copy", "cp"},
	roleDelete: {"deletefile", "deletepath", "removefile", "removepath", "unlink", "delete", "remove", "rm"},
}

// Roles returns the names of the roles that a tool may be given.
func Roles() []string {
	var list []string
	for r := range names {
		list = append(list, string(r))
	}
	slices.Sort(list)
	return list
}

// params are what a parameter of each meaning is called, without what stands between the words.
var params = map[string][]string{
	"path":    {"path", "filepath", "file", "filename", "uri", "target", "directory", "directorypath", "dir", "dirpath", "folder", "folderpath", "root", "pathname", "name"},
	"paths":   {"paths", "files", "filepaths"},
	"content": {"content", "contents", "text", "data", "filetext", "body"},
	"from":    {"source", "sourcepath", "src", "from", "frompath", "oldpath", "oldname", "path"},
	"to":      {"destination", "destinationpath", "dest", "dst", "to", "topath", "newpath", "newname", "target"},
	"pattern": {"pattern", "query", "glob", "regex", "search", "searchpattern", "term"},
	"old":     {"oldtext", "oldstring", "oldstr", "search", "find", "old"},
	"new":     {"newtext", "newstring", "newstr", "replace", "replacement", "new"},
	"head":    {"head", "lines", "limit", "maxlines"},
	"tail":    {"tail"},
}

// wants are the meanings that a tool of a role needs.
var wants = map[role][]string{
	roleRead: {"path"}, roleMany: {"paths"}, roleMedia: {"path"}, roleList: {"path"}, roleSizes: {"path"}, roleTree: {"path"},
	roleSearch: {"path", "pattern"}, roleGrep: {"path", "pattern"}, roleStat: {"path"}, roleWrite: {"path", "content"},
	roleAppend: {"path", "content"}, roleEdit: {"path"}, roleMkdir: {"path"}, roleMove: {"from", "to"}, roleCopy: {"from", "to"},
	roleDelete: {"path"},
}

// tool is a tool of the server in a role.
type tool struct {
	role   role
	name   string
	params map[string]string // the parameter for each meaning
	edits  bool              // old and new are members of the elements of "edits"
	rest   []byte            // what else has to be given
	says   says
}

// says is what a tool claims of itself.
type says struct{ readOnly, hinted bool }

// tools are the server's tools by role.
type tools map[role]*tool

// find recognises tools in a list of them. Given are those that were named by a person: role, tool, parameter.
func find(items []byte, given map[string][2]string) tools {
	found := tools{}
	rank := map[role]int{}
	for item := range wire.Items(items) {
		name := wire.GetString(item, "name")
		for r, known := range names {
			at := slices.Index(known, bare(name))
			if g, ok := given[string(r)]; ok {
				at = -1
				if g[0] == name {
					at = 0
				}
			}
			if old, had := rank[r]; at < 0 || had && old <= at {
				continue
			}
			if t := understand(r, name, item, given[string(r)][1]); t != nil {
				found[r], rank[r] = t, at
			}
		}
	}
	return found
}

// bare returns a name without what stands between its words, in lower case.
func bare(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return -1
	}, name)
}

// understand fills a tool in from its schema; nil when what the role needs is not among its parameters.
func understand(r role, name string, item []byte, path string) *tool {
	t := &tool{role: r, name: name, params: map[string]string{}, rest: []byte("{}")}
	if v, ok := wire.Get(item, "annotations", "readOnlyHint"); ok {
		t.says = says{string(v) == "true", true}
	}
	properties, _ := wire.Get(item, "inputSchema", "properties")
	var have []string
	for p := range wire.Members(properties) {
		have = append(have, p)
	}
	for meaning, known := range params {
		best := len(known)
		for _, p := range have {
			if at := slices.Index(known, bare(p)); at >= 0 && at < best {
				t.params[meaning], best = p, at
			}
		}
	}
	if path != "" {
		t.params["path"] = path
	}
	if r == roleEdit {
		if edits, ok := wire.Get(properties, "edits", "items", "properties"); ok {
			t.edits = true
			for p := range wire.Members(edits) {
				for _, meaning := range []string{"old", "new"} {
					if slices.Contains(params[meaning], bare(p)) {
						t.params[meaning] = p
					}
				}
			}
		}
	}
	required, _ := wire.Get(item, "inputSchema", "required")
	var must []string
	for v := range wire.Items(required) {
		s, _ := wire.Unquote(v)
		must = append(must, s)
	}
	for _, meaning := range wants[r] {
		if t.params[meaning] == "" {
			if meaning != "path" || len(must) != 1 {
				return nil
			}
			t.params[meaning] = must[0] // whatever it is called, there is nothing else that it could be
		}
	}
	if r == roleEdit && (t.params["old"] == "" || t.params["new"] == "") {
		return nil
	}
	for _, p := range must { // what is no path and no content gets the least that its schema allows
		if t.means(p) || t.edits && p == "edits" {
			continue
		}
		schema, _ := wire.Get(properties, p)
		t.rest = wire.SetMember(t.rest, least(schema), p)
	}
	return t
}

func (t *tool) means(param string) bool {
	for _, meaning := range append([]string{"old", "new"}, wants[t.role]...) {
		if t.params[meaning] == param {
			return true
		}
	}
	return false
}

// least returns a value that a schema may allow.
func least(schema []byte) []byte {
	if v, ok := wire.Get(schema, "default"); ok {
		return v
	}
	if v, ok := wire.Get(schema, "const"); ok {
		return v
	}
	if list, ok := wire.Get(schema, "enum"); ok {
		for v := range wire.Items(list) {
			return v
		}
	}
	switch wire.GetString(schema, "type") {
	case "boolean":
		return []byte("false")
	case "integer", "number":
		return []byte("1")
	case "array":
		return []byte("[]")
	case "object":
		return []byte("{}")
	}
	return []byte(`"x"`)
}

// arguments returns the arguments of a call: values, JSON, by meaning.
func (t *tool) arguments(values map[string][]byte) []byte {
	b := t.rest
	if t.edits {
		edit := []byte("{}")
		for _, meaning := range []string{"old", "new"} {
			edit = wire.SetMember(edit, values[meaning], t.params[meaning])
		}
		b = wire.SetMember(b, append(append([]byte{'['}, edit...), ']'), "edits")
	}
	for _, meaning := range []string{"path", "paths", "content", "from", "to", "pattern", "old", "new", "head", "tail"} {
		v, ok := values[meaning]
		if !ok || t.params[meaning] == "" || t.edits && (meaning == "old" || meaning == "new") {
			continue
		}
		b = wire.SetMember(b, v, t.params[meaning])
	}
	return b
}

// text returns values that are strings.
func text(pairs ...string) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = wire.Quote(pairs[i+1])
	}
	return m
}

// found returns the tools for the report.
func (ts tools) found() []Found {
	list := []Found{}
	for r, t := range ts {
		f := Found{Role: string(r), Name: t.name, Arguments: map[string]string{}}
		for _, meaning := range wants[r] {
			f.Arguments[meaning] = t.params[meaning]
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b Found) int { return strings.Compare(a.Role, b.Role) })
	return list
}
