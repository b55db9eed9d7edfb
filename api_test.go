package rootbound_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateAPI = flag.Bool("update-api", false, "write what the public packages export to testdata/api")

// public are the packages that programs of others import, as directories.
var public = []string{"roots", "rootfs", "gosdk"}

// TestAPI holds what the public packages export to testdata/api, so that a change of it is seen and meant. With -update-api it
// writes the files instead.
func TestAPI(t *testing.T) {
	for _, dir := range public {
		got := exported(t, dir)
		name := filepath.Join("testdata", "api", dir+".txt")
		if *updateAPI {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("what package %s exports is another (-want +got); if that is meant: go test -run TestAPI . -update-api\n%s", dir, diff)
		}
	}
}

// TestAPIIsDocumented finds what is exported without a word about it: functions, types, their methods and fields,
// constants and variables.
func TestAPIIsDocumented(t *testing.T) {
	for _, dir := range public {
		p, fset := packageDoc(t, dir)
		missing := func(n ast.Node, name string) {
			t.Errorf("%s: %s.%s has no comment", fset.Position(n.Pos()), dir, name)
		}
		funcs := func(list []*doc.Func, of string) {
			for _, f := range list {
				if f.Doc == "" {
					missing(f.Decl, of+f.Name)
				}
			}
		}
		values := func(list []*doc.Value) {
			for _, v := range list {
				for _, spec := range v.Decl.Specs {
					s := spec.(*ast.ValueSpec)
					if s.Names[0].IsExported() && v.Doc == "" && s.Doc == nil && s.Comment == nil {
						missing(s, s.Names[0].Name)
					}
				}
			}
		}
		values(p.Consts)
		values(p.Vars)
		funcs(p.Funcs, "")
		for _, typ := range p.Types {
			if typ.Doc == "" {
				missing(typ.Decl, typ.Name)
			}
			values(typ.Consts)
			values(typ.Vars)
			funcs(typ.Funcs, "")
			funcs(typ.Methods, typ.Name+".")
			s, ok := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
			if !ok {
				continue
			}
			for i, field := range s.Fields.List {
				// Several on lines of their own may share the comment of the first.
				for j := i; len(field.Names) > 0 && field.Names[0].IsExported() && field.Doc == nil && field.Comment == nil; j-- {
					if j == 0 || fset.Position(s.Fields.List[j].Pos()).Line != fset.Position(s.Fields.List[j-1].Pos()).Line+1 {
						missing(field, typ.Name+"."+field.Names[0].Name)
						break
					}
					if s.Fields.List[j-1].Doc != nil {
						break
					}
				}
			}
		}
	}
}

// exported is what a package exports on Linux, as its declarations without comments.
func exported(t *testing.T, dir string) string {
	t.Helper()
	p, fset := packageDoc(t, dir)
	var out bytes.Buffer
	show := func(decl ast.Node) {
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				n.Doc, n.Body = nil, nil
			case *ast.GenDecl:
				n.Doc = nil
			case *ast.Field:
				n.Doc, n.Comment = nil, nil
			case *ast.ValueSpec:
				n.Doc, n.Comment = nil, nil
			case *ast.TypeSpec:
				n.Doc, n.Comment = nil, nil
			}
			return true
		})
		var text bytes.Buffer
		if err := printer.Fprint(&text, fset, decl); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if strings.TrimSpace(line) != "" {
				out.WriteString(line)
			}
		}
		out.WriteString("\n")
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			show(f.Decl)
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			show(v.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		out.WriteString("\n")
		show(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	return out.String()
}

func packageDoc(t *testing.T, dir string) (*doc.Package, *token.FileSet) {
	t.Helper()
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", false
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if match, err := linux.MatchFile(dir, filepath.Base(name)); err != nil || !match || strings.HasSuffix(name, "_test.go") {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+"/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(p.Types, func(a, b *doc.Type) int { return strings.Compare(a.Name, b.Name) })
	return p, fset
}
