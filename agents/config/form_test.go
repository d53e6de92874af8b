package config_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"ramp/agents/config"
	"ramp/agents/queue/local"
)

var update = flag.Bool("update", false, "write testdata/forms.txt")

// testdata/forms.txt has what is written for every driver, with little and with all that may
// be known.
func TestFormsAreAsTheyWere(t *testing.T) {
	var got bytes.Buffer
	for _, driver := range []string{"slurm", "pbs", "local", "swf", "command"} {
		bare, full := config.Inspection{Driver: driver}, config.Inspection{
			Driver: driver, Conf: `/etc/"batch".conf`, Prefix: []string{"sudo", "-u%d"}, Log: "log.swf", Program: "/opt/program", Claims: "/run/claims",
		}
		found := config.Found{
			Name: "batch", Nodes: 2, Cores: 64, NodeCores: 32, RAMPerCore: 2048, CPUSpeed: 2400, OS: "Linux", Arch: "x86_64",
			Features: []string{"gpu", "100%"}, HoldBy: "job", HoldWhy: "This account is no operator", Notes: []string{"one node is down"},
		}
		terms := config.SiteTerms{Listen: []string{"/ip4/0.0.0.0/tcp/0"}, Start: "2", Least: "1"}
		for _, programs := range []string{config.NoPrograms, "as-user:guest"} {
			terms.Programs, terms.Lacks = programs, []local.Lack{{Protection: local.Cgroup, Why: "it is not delegated"}}
			show(t, &got, bare, config.Found{Cores: 4}, terms)
		}
		terms.Bootstrap, terms.Bank, terms.Currency, terms.Users, terms.JobsDir = []string{"/dns4/a/tcp/1"}, "bank@x", "CPU", []string{"ann"}, "/srv/jobs"
		show(t, &got, full, found, terms)
	}
	const file = "testdata/forms.txt"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not what is written (%v):\n%s", file, err, got.Bytes())
	}
}

func show(t *testing.T, out *bytes.Buffer, q config.Inspection, f config.Found, terms config.SiteTerms) {
	t.Helper()
	text, err := config.Text(q, f, terms, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "==== %s, programs %s\n%s", q.Driver, terms.Programs, text)
}
