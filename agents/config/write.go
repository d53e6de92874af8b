package config

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
	"time"

	"go.yaml.in/yaml/v3"

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
}

// Text writes the configuration of an agent for what an inspection found, with comments.
func Text(q Inspection, f Found, t SiteTerms, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	err := configForm.Execute(&b, struct {
		Q     Inspection
		F     Found
		T     SiteTerms
		Today string
		What  string
	}{q, f, t, now.UTC().Format(time.DateOnly), Machine(q, f)})
	if err != nil {
		return nil, err
	}
	var check Config // it must be readable
	d := yaml.NewDecoder(bytes.NewReader(b.Bytes()))
	d.KnownFields(true)
	if err := d.Decode(&check); err != nil {
		return nil, fmt.Errorf("the generated configuration cannot be read: %w", err)
	}
	return b.Bytes(), nil
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

var configForm = template.Must(template.New("config").Funcs(template.FuncMap{"quoted": quoted, "listed": listed}).Parse(
	`# {{.What}}.
# Written by 'ramp resource init' on {{.Today}}. docs/OPERATIONS.md explains every key.
{{- range .F.Notes}}
# Note: {{.}}.
{{- end}}

# Where this agent listens. Only outbound connections are needed; port 0 takes any.
listen: {{listed .T.Listen}}
{{- if .T.Bootstrap}}
bootstrap: {{listed .T.Bootstrap}}
{{- else}}
# Addresses of any agents of the market, each ending in /p2p/ID. Without one this
# agent waits for others to come.
# bootstrap: ["/dns4/market.example/tcp/4101/p2p/…"]
{{- end}}
# Find agents of this local network without an address, and be found by them.
# mdns: true

resource:
  driver: {{.Q.Driver}}
{{- if eq .Q.Driver "slurm"}}
  slurm:
    partition: {{quoted .F.Name}}
    # Who may run jobs in sold slots.
    users: {{listed .T.Users}}
{{- if eq .F.HoldBy "job"}}
    # {{.F.HoldWhy}}.
    # So a placeholder job holds a sold slot. Slurm does not promise when it runs: if it does
    # not run a minute after the slot's start, the buyer gets the money back. For true
    # reservations let this account be an operator, or set prefix, and hold_by: reservation.
    hold_by: job
{{- else}}
    hold_by: reservation
{{- end}}
    # As Slurm says now; so the agent starts while Slurm is away.
    cores: {{.F.Cores}}
{{- with .Q.Conf}}
    conf: {{quoted .}}
{{- end}}
{{- with .Q.Prefix}}
    prefix: {{listed .}}
{{- end}}
{{- else if eq .Q.Driver "pbs"}}
  pbs:
    # Who may run jobs in sold slots.
    users: {{listed .T.Users}}
    cores: {{.F.Cores}}
{{- with .Q.Conf}}
    conf: {{quoted .}}
{{- end}}
{{- with .Q.Prefix}}
    prefix: {{listed .}}
{{- end}}
{{- else if eq .Q.Driver "local"}}
  local:
    # How many may be sold, by all agents of this machine together. What runs here
    # beside the market needs cores too.
    cores: {{.F.Cores}}
{{- with .Q.Claims}}
    claims: {{quoted .}}
{{- end}}
{{- else if eq .Q.Driver "swf"}}
  swf:
    log: {{quoted .Q.Log}}
    base: 0
{{- else}}
  command:
    program: {{quoted .Q.Program}}
    cores: {{.F.Cores}}
{{- end}}

  # Credits per core-hour: the list price, at which every bid opens whatever the buyer
  # would pay, and the least, to which rivals may press it.
  start_price: {{quoted .T.Start}}
  minimum_price: {{quoted .T.Least}}

  # The banks and currencies that this site deals in.
{{- if .T.Bank}}
  pay:
    - bank: {{quoted .T.Bank}}
      currency: {{quoted .T.Currency}}
{{- else}}
  # 'ramp ca show agent.pem' prints a bank's ID. Nothing is sold without one.
  pay: []
{{- end}}

  # When a purchase is paid; metered: for the processor time that its program used.
  modes: [on-reservation, metered]

  # What its nodes are: a request for a property that is not given here is refused.
  properties:
{{- if .F.OS}}
    os: {{quoted .F.OS}}
{{- else}}
    # os: Linux
{{- end}}
{{- if .F.Arch}}
    architecture: {{quoted .F.Arch}}
{{- else}}
    # architecture: x86_64
{{- end}}
{{- if .F.CPUSpeed}}
    cpu_speed_mhz: {{.F.CPUSpeed}}
{{- else}}
    # cpu_speed_mhz: 2400
{{- end}}
{{- if .F.RAMPerCore}}
    ram_per_core_mb: {{.F.RAMPerCore}}
{{- end}}
{{- if .F.NodeCores}}
    node_cores: {{.F.NodeCores}}
{{- end}}
    # bandwidth_mbits: 10000
    # total_disk_gb: 1000
    # node_disk_gb: 100
{{- if .F.Features}}
    # Features that all nodes have: {{listed .F.Features}}
{{- end}}

{{- if ne .Q.Driver "swf"}}

{{- if .T.RunsPrograms}}

  # Buyers may run any command in sold slots: docs/JOBS.md.{{if ne .Q.Driver "local"}} All nodes must see the
  # directory, and the accounts must be able to pass through it.{{end}}
  jobs:
{{- if .T.JobsDir}}
    # Jobs run as other accounts, which cannot enter this directory.
    dir: {{quoted .T.JobsDir}}
{{- else if ne .Q.Driver "local"}}
    # dir: /shared/ramp-jobs
{{- end}}
{{- with .T.UIDs}}
    uids: {{.}}
{{- end}}
{{- with .T.Accepts .Q.Driver}}
    # Protections that this machine may lack; 'ramp resource check --isolation' tries them.
    accept: {{listed .}}
{{- end}}
    accounts:
      - {agent: "*",{{with .T.Account}} user: {{quoted .}},{{end}} commands: true}
{{- else if eq .Q.Driver "local"}}

  # Without this no programs run in sold slots: docs/JOBS.md. 'ramp resource check
  # --isolation' tries whether they are contained.
  # jobs:
  #   accounts:
  #     - {agent: "*", commands: true}
{{- else}}

  # Without this no programs run in sold slots: docs/JOBS.md. On a cluster all nodes
  # must see the directory, and the accounts must be able to pass through it.
  # jobs:
  #   dir: /shared/ramp-jobs
  #   accounts:
  #     - {agent: "*", user: guest, commands: true}
{{- end}}

  # How soon after an offer a slot may begin. A purchase that takes longer bids again.
  {{if eq .Q.Driver "local"}}lead: 5s{{else}}# lead: 2m{{end}}
{{- end}}

  # Until how long before its start a buyer may cancel a sold unit, and the share of its
  # cost that the site keeps, in thousandths. Without this, never.
  # cancellation: {before: 24h, fee_per_mille: 100}
`))
