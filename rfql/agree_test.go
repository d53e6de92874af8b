package rfql_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ramp/rfql"
)

// TestSchemaAgreesOnMutants makes many documents out of good ones, each with a
// few changes, and holds our verdict against that of libxml2.
func TestSchemaAgreesOnMutants(t *testing.T) {
	xmllint(t)
	tmp, rng := t.TempDir(), rand.New(rand.NewPCG(7, 7))
	seeds := [][]byte{[]byte(kilobyte), document(t, "extension-attributes.xml"), document(t, "foreign-elements.xml"), document(t, "nodes.xml")}
	ours := map[string]bool{}
	for i := range 1500 {
		b := mutant(rng, seeds[i%len(seeds)])
		file := filepath.Join(tmp, fmt.Sprintf("%04d.xml", i))
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := rfql.Read(b)
		ours[file] = err == nil
	}
	theirs := lintAll(t, tmp)
	accepted := 0
	for file, we := range ours {
		if we {
			accepted++
		}
		if they := theirs[file]; we != they {
			b, _ := os.ReadFile(file)
			_, _, err := rfql.Read(b)
			t.Errorf("we accept: %t, the schema does: %t, because %v:\n%s", we, they, err, b)
		}
	}
	if accepted < 100 || accepted > len(ours)-100 {
		t.Errorf("%d of %d mutants are accepted: too one-sided to tell anything", accepted, len(ours))
	}
}

// lintAll returns the files of a directory that rfql.xsd accepts.
func lintAll(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("xmllint", append([]string{"--noout", "--nonet", "--schema", "rfql.xsd"}, files...)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	accepted := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if file, ok := strings.CutSuffix(line, " validates\n"); ok {
			accepted[file] = true
		}
	}
	return accepted
}

// mutant changes lines, terms, values and attributes of a document. It leaves
// alone what only we refuse: document types, encodings, depth and xsi:type.
func mutant(rng *rand.Rand, b []byte) []byte {
	s := string(b)
	for range 1 + rng.IntN(3) {
		s = change(rng, s)
	}
	return []byte(s)
}

func change(rng *rand.Rand, s string) string {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	switch rng.IntN(7) {
	case 0: // a line goes, comes twice, or changes places with the next
		lines := strings.SplitAfter(s, "\n")
		i := 1 + rng.IntN(len(lines)-2)
		switch rng.IntN(3) {
		case 0:
			lines[i] = ""
		case 1:
			lines[i] += lines[i]
		default:
			lines[i], lines[i+1] = lines[i+1], lines[i]
		}
		return strings.Join(lines, "")
	case 1, 2: // a value becomes another
		return swapValue(rng, s, pick("0", "1", "-1", "+7", "007", " 8\t", "1.5", ".5", "5.", "0.0", "1.0000000", "1.0000001",
			"9223372036854.775807", "9223372036854.775808", "1073741824", "1073741825", "5256000", "5256001", "",
			"2031-01-31", "2031-02-29", "2032-02-29", "1970-01-01", "2199-12-31Z", "2031-01-31+14:00", "2031-01-31-14:01",
			"24:00:00", "24:00:00.0", "24:00:01", "23:59:59.999999999", "00:00:00-13:59", "12:30:61", "12:30", "word", "two words", "a  b", "ü", "\u00a0", "\u2003"))
	case 3: // a name becomes another
		return strings.Replace(s, pick("CPUSpeed", "Request", "TotalCores", "Nodes", "Disk", "EndDate", "WallTime"), pick("CPUSpeed", "Nodes", "Cores", "StartDate", "x:y", "Other", "WallTime"), 1+rng.IntN(2))
	case 4: // something is put behind a tag
		return behindTag(rng, s, pick("<!-- c -->", "<?p i?>", "text", " ", "<![CDATA[5]]>", "<![CDATA[ ]]>", "<![CDATA[]]>", "<x:a xmlns:x='urn:x'/>", "<a/>", "<a xmlns='urn:x'><b c='d'/></a>",
			"<CPUSpeed>5</CPUSpeed>", "<Cores><TotalCores>1</TotalCores></Cores>", "&#53;", "&amp;", "<r:a xmlns:r='urn:ramp:rfql:2'/>"))
	case 5: // an attribute is added
		return attributeAdded(rng, s, pick(`a="b"`, `xml:lang="en"`, `xmlns:x="urn:x" x:a="1"`, `xmlns:r="urn:ramp:rfql:2" r:zone="+02:00"`,
			`xmlns:r="urn:ramp:rfql:2" r:zone="+24:00"`, `xmlns:r="urn:ramp:rfql:2" r:optimize="time"`, `xmlns:r="urn:ramp:rfql:2" r:optimize="x"`,
			`xmlns:r="urn:ramp:rfql:2" r:name=" a b "`, `xmlns:r="urn:ramp:rfql:2" r:application=""`, `xmlns="urn:x"`, `xmlns=""`))
	}
	i := rng.IntN(len(s)-60) + 60 // a byte goes or becomes another
	return s[:i] + pick("", "", "<", ">", "/", " ", "\"", "&", "x") + s[i+1:]
}

func swapValue(rng *rand.Rand, s, value string) string {
	for range 50 {
		i := rng.IntN(len(s))
		end := strings.IndexByte(s[i:], '<')
		start := strings.LastIndexByte(s[:i], '>')
		if end >= 0 && start >= 0 && strings.HasPrefix(s[i+end:], "</") && !strings.Contains(s[start+1:i+end], "<") {
			return s[:start+1] + value + s[i+end:]
		}
	}
	return s
}

func behindTag(rng *rand.Rand, s, what string) string {
	i := 60 + rng.IntN(len(s)-60)
	end := strings.IndexByte(s[i:], '>')
	if end < 0 {
		return s
	}
	return s[:i+end+1] + what + s[i+end+1:]
}

func attributeAdded(rng *rand.Rand, s, what string) string {
	i := 60 + rng.IntN(len(s)-60)
	end := strings.IndexByte(s[i:], '>')
	if end < 1 || strings.ContainsAny(s[i+end-1:i+end], "/?-") {
		return s
	}
	return s[:i+end] + " " + what + s[i+end:]
}

// FuzzRead looks for panics, for documents that encoding/xml finds ill-formed,
// and for documents that do not survive being written and read.
func FuzzRead(f *testing.F) {
	for _, r := range table(f) {
		f.Add(document(f, r.file))
	}
	f.Add([]byte(kilobyte))
	f.Fuzz(func(t *testing.T, b []byte) {
		draft, _, err := rfql.Read(b)
		if err != nil {
			var faults rfql.Faults
			if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > rfql.MaxFaults {
				t.Fatalf("an error that is no Faults: %v", err)
			}
			return
		}
		if bytes.IndexFunc(b, func(r rune) bool { return r > '~' }) < 0 {
			wellFormed(t, b) // encoding/xml knows names of the fourth edition only
		}
		d, err := rfql.Check(draft, atNow())
		if err != nil {
			return
		}
		again, err := rfql.Parse(d.XML(), atNow())
		if err != nil || !again.Equal(d) || !bytes.Equal(again.XML(), d.XML()) {
			t.Fatalf("%v: %s", err, d.XML())
		}
	})
}

func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	for dec := xml.NewDecoder(bytes.NewReader(b)); ; {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("encoding/xml: %v: %q", err, b)
		}
	}
}
