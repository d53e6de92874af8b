package rfql_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/rfql"
)

// The documents for several packages, with the expected results.
const dir = "../testdata/rfql"

var update = flag.Bool("update", false, "write testdata/rfql/faults.txt anew")

// atNow is when the documents of the table are checked.
func atNow() time.Time { return time.Date(2030, 12, 31, 20, 0, 0, 0, time.UTC) }

type row struct{ file, verdict, what string }

func table(t testing.TB) []row {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 2 && fields[0] != "#" {
			rows = append(rows, row{fields[0], fields[1], strings.Join(fields[2:], " ")})
		}
	}
	if len(rows) < 60 {
		t.Fatalf("the table has %d documents, want at least 60", len(rows))
	}
	return rows
}

func document(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTable(t *testing.T) {
	for _, r := range table(t) {
		t.Run(r.what, func(t *testing.T) {
			b := document(t, r.file)
			_, _, readErr := rfql.Read(b)
			_, parseErr := rfql.Parse(b, atNow())
			if got := readErr == nil; got != (r.verdict == "good" || r.verdict == "meaning") {
				t.Errorf("%s (%s): Read says %v", r.file, r.verdict, readErr)
			}
			if got := parseErr == nil; got != (r.verdict == "good") {
				t.Errorf("%s (%s): Parse says %v", r.file, r.verdict, parseErr)
			}
			var faults rfql.Faults
			if errors.As(parseErr, &faults); (len(faults.Of(rfql.Meaning)) > 0) != (r.verdict == "meaning") {
				t.Errorf("%s (%s): faults of the wrong class: %v", r.file, r.verdict, faults)
			}
		})
	}
}

// TestSchemaAgrees holds our reading of every document against that of libxml2.
func TestSchemaAgrees(t *testing.T) {
	lint := xmllint(t)
	for _, r := range table(t) {
		got := lint(filepath.Join(dir, r.file))
		if want := r.verdict != "form"; r.verdict != "bound" && got != want {
			t.Errorf("%s (%s, %s): the schema accepts: %t", r.file, r.verdict, r.what, got)
		}
	}
}

// xmllint returns a function that reports whether rfql.xsd accepts a file. It
// skips the test if the program is not installed.
func xmllint(t testing.TB) func(file string) bool {
	t.Helper()
	path, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint (package libxml2-utils) is not installed")
	}
	return func(file string) bool {
		out, err := exec.Command(path, "--noout", "--nonet", "--schema", "rfql.xsd", file).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || bytes.Contains(out, []byte("Schemas parser error")) {
			t.Fatalf("xmllint: %v: %s", err, out)
		}
		return err == nil
	}
}

// TestFaults checks the faults of every document of the table that Parse refuses, and
// the notices of the others.
func TestFaults(t *testing.T) {
	var got strings.Builder
	for _, r := range table(t) {
		b := document(t, r.file)
		_, said, _ := rfql.Read(b)
		_, err := rfql.Parse(b, atNow())
		if errors.As(err, &said); len(said) > 0 {
			got.WriteString(said.In(r.file) + "\n")
		}
	}
	golden := filepath.Join(dir, "faults.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("faults differ (-want +got):\n%s", diff)
	}
}

// TestEveryFaultSaysWhere looks at the faults of the whole table one by one.
func TestEveryFaultSaysWhere(t *testing.T) {
	for _, r := range table(t) {
		_, err := rfql.Parse(document(t, r.file), atNow())
		var faults rfql.Faults
		errors.As(err, &faults)
		for _, f := range faults {
			if f.Line < 1 || f.Term == "" || f.Found == "" || f.Allowed == "" || strings.Contains(f.In("x"), "\n") {
				t.Errorf("%s: %+v", r.file, f)
			}
		}
	}
}
