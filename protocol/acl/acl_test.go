package acl_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol/acl"
)

var update = flag.Bool("update", false, "write the golden files anew")

const goldens = "../../testdata/acl"

// Every NAME.acl is read; NAME.json is its JSON, NAME.fipa what Format makes of
// it.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob(goldens + "/*.acl")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d golden messages (%v), want at least 5", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".acl")
		t.Run(filepath.Base(name), func(t *testing.T) { checkGolden(t, name) })
	}
}

func checkGolden(t *testing.T, name string) {
	m, err := acl.Parse(read(t, name+".acl"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	golden(t, name+".json", pretty.Bytes())
	golden(t, name+".fipa", acl.Format(m))

	again, err := acl.Parse(read(t, name+".fipa"))
	if err != nil || !cmp.Equal(m, again) {
		t.Errorf("what Format wrote is read differently (%v): %s", err, cmp.Diff(m, again))
	}
	var fromJSON acl.Message
	if err := json.Unmarshal(read(t, name+".json"), &fromJSON); err != nil || !cmp.Equal(m, fromJSON) {
		t.Errorf("the JSON is read differently (%v): %s", err, cmp.Diff(m, fromJSON))
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, file); !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update if that is right):\n%s", file, cmp.Diff(string(want), string(got)))
	}
}

func TestKnownHasTheActsOfTheStandard(t *testing.T) {
	acts := strings.Fields(`accept-proposal agree cancel cfp confirm disconfirm failure inform inform-if inform-ref
		not-understood propagate propose proxy query-if query-ref refuse reject-proposal request request-when
		request-whenever subscribe`)
	for _, act := range acts {
		m, err := acl.Parse([]byte("(" + act + ")"))
		if err != nil || string(m.Performative) != act {
			t.Errorf("%s: read as %q, %v", act, m.Performative, err)
		}
	}
	if len(acts) != 22 || acl.Known("offer") || acl.Known("CFP") || acl.Known("") {
		t.Error("an act is missing, or a foreign one is known")
	}
}
