package ramp_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of the house: beyond them a reader loses the thread. Generated code, and
// tests where not said otherwise, do not count.
const (
	mostProgramLines   = 146_760 // of Go, in total: 146,600 before claims of federations were renewed around earlier sales; 146,400 before clocks were ahead of running jobs; 147,300 before what only repeats was taken out; 147,000 before clocks were set back by days and 500 mistakes were made; 146,500 before callers, members, stores and addresses that lie were tried; 105,500 before jobs were contained, daily work was made short, and sweeps, NAT, indexes, pages, federations and a log before the stores came
	mostCommandLines   = 15_000  // below cmd/ramp
	mostPackageLines   = 6_000
	mostPackageFiles   = 60
	mostMethods        = 45 // of one type
	mostFunctionLines  = 50
	mostExportTest     = 80     // lines of a package's export_test.go files
	mostDocumentWords  = 40_000 // of Markdown, without what is generated: docs/CLI.md and the calls of docs/CONTROL.md
	mostReadmeWords    = 1_200
	mostChangelogLines = 60
)

// generatedCalls are the tables of docs/CONTROL.md that are made from the table of calls.
var generatedCalls = regexp.MustCompile(`(?s)<!-- calls -->.*<!-- end of calls -->`)

// TestTheHouseStaysSmall holds the bounds above.
func TestTheHouseStaysSmall(t *testing.T) {
	for _, fault := range append(codeFaults(t, sources(t)), documentFaults(t)...) {
		t.Error(fault)
	}
}

// TestABigHouseIsSeen proves that the test above can fail.
func TestABigHouseIsSeen(t *testing.T) {
	long := "package p\nfunc f() {\n" + strings.Repeat("\t_ = 0\n", mostFunctionLines) + "}\n"
	wide := "package p\ntype T int\n"
	for i := range mostMethods + 1 {
		wide += fmt.Sprintf("func (t *T) m%d() {}\n", i)
	}
	for want, f := range map[string]source{
		"function":  {"agents/x/x.go", []byte(long)},
		"methods":   {"agents/x/x.go", []byte(wide)},
		"lines":     {"agents/x/x.go", []byte("package p\n" + strings.Repeat("\n", mostPackageLines))},
		"cmd/ramp:": {"cmd/ramp/x/x.go", []byte("package p\n" + strings.Repeat("\n", mostCommandLines))},
	} {
		if faults := strings.Join(codeFaults(t, []source{f}), "\n"); !strings.Contains(faults, want) {
			t.Errorf("%s: not seen: %q", want, faults)
		}
	}
}

// packageSize is the size of one package.
type packageSize struct {
	files, lines int
	methods      map[string]int
}

// codeFaults lists where the code is larger than the bounds.
func codeFaults(t *testing.T, files []source) (faults []string) {
	t.Helper()
	packages := map[string]*packageSize{}
	total, commands := 0, 0
	for _, f := range files {
		if ast.IsGenerated(parse(t, f)) {
			continue
		}
		lines := bytes.Count(f.text, []byte("\n"))
		dir := path.Dir(f.path)
		r := packages[dir]
		if r == nil {
			r = &packageSize{methods: map[string]int{}}
			packages[dir] = r
		}
		r.files, r.lines, total = r.files+1, r.lines+lines, total+lines
		if strings.HasPrefix(dir, "cmd/ramp") {
			commands += lines
		}
		faults = append(faults, r.count(t, f)...)
	}
	for dir, r := range packages {
		if r.files > mostPackageFiles || r.lines > mostPackageLines {
			faults = append(faults, fmt.Sprintf("%s: %d files and %d lines; allowed are %d and %d", dir, r.files, r.lines, mostPackageFiles, mostPackageLines))
		}
		for name, n := range r.methods {
			if n > mostMethods {
				faults = append(faults, fmt.Sprintf("%s.%s: %d methods; allowed are %d", dir, name, n, mostMethods))
			}
		}
	}
	if total > mostProgramLines {
		faults = append(faults, fmt.Sprintf("the program: %d lines; allowed are %d", total, mostProgramLines))
	}
	if commands > mostCommandLines {
		faults = append(faults, fmt.Sprintf("cmd/ramp: %d lines; allowed are %d", commands, mostCommandLines))
	}
	slices.Sort(faults)
	return faults
}

// count adds a file's methods, and lists functions that are too long.
func (r *packageSize) count(t *testing.T, f source) (faults []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, f.path, f.text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if fn.Recv != nil {
			r.methods[receiver(fn.Recv.List[0].Type)]++
		}
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > mostFunctionLines {
			faults = append(faults, fmt.Sprintf("%s: function %s has %d lines; allowed are %d", f.path, fn.Name.Name, n, mostFunctionLines))
		}
	}
	return faults
}

func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}

func parse(t *testing.T, f source) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// documentFaults lists documents, and helpers of tests, that are larger than the bounds.
func documentFaults(t *testing.T) (faults []string) {
	t.Helper()
	words := 0
	exports := map[string]int{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (p == ".git" || p == "bin" || p == "dist"):
			return fs.SkipDir
		case strings.HasSuffix(p, ".md") && p != "docs/CLI.md":
			text, err := os.ReadFile(p)
			words += len(strings.Fields(generatedCalls.ReplaceAllString(string(text), "")))
			return err
		case strings.HasPrefix(d.Name(), "export_") && strings.HasSuffix(p, "_test.go"):
			text, err := os.ReadFile(p)
			exports[filepath.Dir(p)] += bytes.Count(text, []byte("\n"))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if words > mostDocumentWords {
		faults = append(faults, fmt.Sprintf("the documents: %d words; allowed are %d", words, mostDocumentWords))
	}
	if n := len(strings.Fields(read(t, "README.md"))); n > mostReadmeWords {
		faults = append(faults, fmt.Sprintf("README.md: %d words; allowed are %d", n, mostReadmeWords))
	}
	if n := strings.Count(read(t, "CHANGELOG.md"), "\n"); n > mostChangelogLines {
		faults = append(faults, fmt.Sprintf("CHANGELOG.md: %d lines; allowed are %d", n, mostChangelogLines))
	}
	for dir, n := range exports {
		if n > mostExportTest {
			faults = append(faults, fmt.Sprintf("%s: %d lines of export_test.go; allowed are %d", dir, n, mostExportTest))
		}
	}
	return faults
}
