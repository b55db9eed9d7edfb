package pathargs

import (
	"strings"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"path": "path", "filePath": "file path", "file_path": "file path", "outputFilename": "output filename",
		"targetDir": "target dir", "working-directory": "working directory", "HTTPPath": "http path", "dirURI": "dir uri",
		"path2": "path", "file_1": "file", "a1Path": "a1 path", "PATH": "path", "": "", "___": "", "вход_path": "вход path",
		"pathſ": "paths", "X": "x",
	} {
		if got := strings.Join(words(in), " "); got != want {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUnderstand(t *testing.T) {
	kinds := map[kind]string{
		kindPath: "path paths file files filename fileName file_names dir directory folder cwd filePath file_path targetDir " +
			"outputFilename absolutePath relative_path repo_path workingDirectory projectPath path_to_file pathInProject " +
			"dirForAssetWrites file_uri fileUrl outputfile destdir notebook_path Path PATH input_files dirs folders subfolder " +
			"old_path newPath db_path dockerfile",
		kindAmbiguous: "from to source destination root uri name root_uri moveTo copy_from sources dst dest repoRoot",
		kindURL:       "url urls imageUrl href",
		kindFree: "content text body message description query prompt code sql oldText newText new_string old_str file_text " +
			"commit_message fileContent path_description command search replace diff",
		kindOther: "owner repo branch ref id fileId folder_id file_type mode profile user_profile namePath jsonPath json_path " +
			"xpath url_path key_path user_name username limit libraryId " +
			"filePattern file_extension",
	}
	for want, names := range kinds {
		for n := range strings.FieldsSeq(names) {
			if got := understand(n).kind; got != want {
				t.Errorf("understand(%q) = %d, want %d", n, got, want)
			}
		}
	}
}

func TestNeed(t *testing.T) {
	yes, no := true, false
	reads, writes := &tool{readOnly: &yes}, &tool{readOnly: &no}
	tests := []struct {
		tool, arg string
		says      *tool
		want      roots.Access
	}{
		{"read_file", "path", nil, roots.Read},
		{"read_file", "target_file", nil, roots.Read},
		{"list_directory", "path", writes, roots.Read},
		{"write_file", "path", nil, roots.Write},
		{"writeFile", "pathInProject", nil, roots.Write},
		{"edit_file", "path", reads, roots.Write},
		{"create_directory", "path", nil, roots.Write},
		{"delete_file", "path", nil, roots.Delete},
		{"move_file", "source", nil, roots.Delete},
		{"move_file", "destination", nil, roots.Write},
		{"rename", "old_path", nil, roots.Delete},
		{"rename", "new_path", nil, roots.Write},
		{"copy_file", "source", nil, roots.Read},
		{"copy_file", "destination", nil, roots.Write},
		{"convert", "input_file", nil, roots.Read},
		{"convert", "output_file", nil, roots.Write},
		{"browser_take_screenshot", "filename", nil, roots.Write},
		{"browser_file_upload", "paths", writes, roots.Read},
		{"frobnicate", "path", nil, roots.Read},
		{"frobnicate", "path", reads, roots.Read},
		{"frobnicate", "path", writes, roots.Write},
		{"git_commit", "repo_path", nil, roots.Write},
		{"git_status", "repo_path", nil, roots.Read},
	}
	for _, tt := range tests {
		if got := need(tt.tool, tt.says, tt.arg); got != tt.want {
			t.Errorf("need(%q, %q) = %d, want %d", tt.tool, tt.arg, got, tt.want)
		}
	}
}

func TestRuleNames(t *testing.T) {
	r := Rules{Tools: map[string]ToolRules{
		"t": {Paths: []string{"where", "/edits/*/in", "/map/a~1b"}, NotPaths: []string{"/path", "query", "where"}},
		"*": {NotPaths: []string{"everywhere"}},
	}}
	for at, want := range map[string]listed{
		"where": listedPath, "x where": listedPath, "where 3": listedPath, "edits 0 in": listedPath, "edits 0 out": unlisted,
		"map a/b": listedPath, "path": listedNot, "x path": unlisted, "query": listedNot, "everywhere": listedNot, "edits": unlisted,
		"edits 0 in 5": listedPath,
	} {
		if got := r.lists("t", strings.Fields(at)); got != want {
			t.Errorf("%q: %d, want %d", at, got, want)
		}
	}
	if got := r.lists("other", []string{"where"}); got != unlisted {
		t.Errorf("a rule for another tool: %d", got)
	}
}
