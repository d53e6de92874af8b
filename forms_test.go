package ramp_test

import (
	goflag "flag"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

var update = goflag.Bool("update", false, "write the forms of stored files")

// stored has, for each kind of stored file, where its schema number is and the packages
// that give its tables their form.
var stored = []struct {
	kind, schema string
	packages     []string
}{
	{"journal", "agents/journal/journal.go", []string{
		"agents/receipts", "agents/resource", "agents/resource/launch", "agents/user", "protocol", "protocol/reserve",
	}},
	{"ledger", "bank/ledgerdb/db.go", []string{"bank/ledger", "bank/ledgerdb", "bank/row", "bank/sold", "bank/voids"}},
}

// TestSchemaNumbersFollowTheForm fails if what is stored has changed and the number has
// not: an older program would open the file and misread it, or call it damaged. The form is
// the tables, versions of rows, kinds of entries and stored fields that the sources name.
func TestSchemaNumbersFollowTheForm(t *testing.T) {
	for _, s := range stored {
		golden := "testdata/forms/" + s.kind
		old := strings.SplitN(read(t, golden), "\n", 2)
		number, form := "form "+schemaIn(t, s.schema), formOf(t, s.packages)
		if number == old[0] && form == old[1] {
			continue
		}
		if number == old[0] {
			t.Errorf("the form of a %s has changed: raise Schema in %s, then run 'go test . -run Schema -update'\n%s", s.kind, s.schema, changes(old[1], form))
			continue
		}
		if !*update {
			t.Errorf("a %s has %s, %s has %s: run 'go test . -run Schema -update'", s.kind, number, golden, old[0])
			continue
		}
		if err := os.WriteFile(golden, []byte(number+"\n"+form), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// formOf lists what the sources of packages say about stored files.
func formOf(t *testing.T, packages []string) string {
	var lines []string
	for _, f := range sources(t) {
		if dir := path.Dir(f.path); slices.Contains(packages, dir) {
			for _, d := range parse(t, f).Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					for _, spec := range g.Specs {
						lines = append(lines, formIn(dir, spec)...)
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func formIn(dir string, spec ast.Spec) (lines []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		name := s.Names[0].Name
		if len(s.Values) == 1 && (strings.HasPrefix(name, "Table") || strings.HasPrefix(name, "Kind") || strings.HasSuffix(name, "ersion")) {
			if v, ok := s.Values[0].(*ast.BasicLit); ok {
				lines = append(lines, fmt.Sprintf("%s %s = %s", dir, name, v.Value))
			}
		}
	case *ast.TypeSpec:
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return nil
		}
		for _, f := range fields.Fields.List {
			if f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`) {
				lines = append(lines, fmt.Sprintf("%s %s %s", dir, s.Name.Name, f.Tag.Value))
			}
		}
	}
	return lines
}

// schemaIn is the number that a file gives its constant Schema.
func schemaIn(t *testing.T, file string) string {
	for _, d := range parse(t, source{file, []byte(read(t, file))}).Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for _, spec := range g.Specs {
				if s := spec.(*ast.ValueSpec); s.Names[0].Name == "Schema" {
					return s.Values[0].(*ast.BasicLit).Value
				}
			}
		}
	}
	t.Fatalf("%s: no constant Schema", file)
	return ""
}

// changes lists the lines that only one of two texts has.
func changes(before, after string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", before, after}, {"+", after, before}} {
		for line := range strings.Lines(side.text) {
			if !strings.Contains(side.other, line) {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}

// TestAChangedFormIsSeen proves that the test above can fail.
func TestAChangedFormIsSeen(t *testing.T) {
	for _, src := range []string{
		"package p\nconst TableNew = \"new\"\n", "package p\nconst KindNew Kind = 27\n", "package p\nconst rowVersion = 3\n",
		"package p\ntype row struct {\n\tNew int `json:\"new\"`\n}\n",
	} {
		d := parse(t, source{"protocol/reserve/x.go", []byte(src)}).Decls[0].(*ast.GenDecl)
		if lines := formIn("protocol/reserve", d.Specs[0]); len(lines) != 1 {
			t.Errorf("%s: not seen", src)
		}
	}
}
