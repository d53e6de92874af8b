package config

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ramp/agents/queue/local"
	"ramp/agents/words"
)

// SiteTerms is what an inspection cannot find: the trading partners and prices.
type SiteTerms struct {
	Listen, Bootstrap []string
	Bank, Currency    string
	Start, Least      string // prices
	Users             []string
	Programs          string // that buyers may run: Contained, as-user:ACCOUNT, NoPrograms; "": undecided, so none
	JobsDir           string // of jobs' files; "": below the agent's directory
	Lacks             []local.Lack
}

// Text writes the configuration of an agent for what an inspection found, with comments.
func Text(q Inspection, f Found, t SiteTerms, now time.Time) ([]byte, error) {
	text := []byte(form{q, f, t}.text(now))
	var check Config // it must be readable
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&check); err != nil {
		return nil, fmt.Errorf("the generated configuration cannot be read: %w", err)
	}
	return text, nil
}

// Machine describes what is sold.
func Machine(q Inspection, f Found) string {
	what := map[string]string{"slurm": fmt.Sprintf("partition %q of a Slurm cluster", f.Name), "pbs": "an OpenPBS server", "local": "this machine",
		"command": "the machine of a program", "swf": "a workload log, replayed as a machine"}[q.Driver]
	if f.NodeCores > 0 {
		return fmt.Sprintf("%s: %d cores on %s", what, f.Cores, words.Plural(f.Nodes, "node"))
	}
	return fmt.Sprintf("%s: %d cores", what, f.Cores)
}

// quoted writes a text as YAML on one line.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// listed writes a list of texts as YAML.
func listed(list []string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = quoted(s)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
