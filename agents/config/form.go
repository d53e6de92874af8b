package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// form is what the text of a configuration depends on.
type form struct {
	q Inspection
	f Found
	t SiteTerms
}

// either is lines if a condition holds, and other lines otherwise.
func either(ok bool, lines, otherwise string) string {
	if ok {
		return lines
	}
	return otherwise
}

// given is a key with its value in YAML, or without one the lines in its place.
func given(key, value, otherwise string) string {
	return either(value != "", key+": "+value+"\n", otherwise)
}

func (c form) text(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# %s.
# Written by 'ramp resource init' on %s. docs/OPERATIONS.md explains every key.
`, Machine(c.q, c.f), now.UTC().Format(time.DateOnly))
	for _, n := range c.f.Notes {
		fmt.Fprintf(&b, "# Note: %s.\n", n)
	}
	b.WriteString(`
# Where this agent listens. Only outbound connections are needed; port 0 takes any.
listen: ` + listed(c.t.Listen) + "\n")
	b.WriteString(given("bootstrap", several(c.t.Bootstrap), `# Addresses of any agents of the market, each ending in /p2p/ID. Without one this
# agent waits for others to come.
# bootstrap: ["/dns4/market.example/tcp/4101/p2p/…"]
`) + `# Find agents of this local network without an address, and be found by them.
# mdns: true

resource:
  driver: ` + c.q.Driver + "\n" + c.driver() + c.prices() + c.properties())
	if c.q.Driver != "swf" {
		b.WriteString(c.jobs() + `
  # How soon after an offer a slot may begin. A purchase that takes longer bids again.
  ` + either(c.q.Driver == "local", "lead: 5s\n", "# lead: 2m\n"))
	}
	return b.String() + `
  # Until how long before its start a buyer may cancel a sold unit, and the share of its
  # cost that the site keeps, in thousandths. Without this, never.
  # cancellation: {before: 24h, fee_per_mille: 100}
`
}

// driver is about the batch system.
func (c form) driver() string {
	cores := fmt.Sprintf("    cores: %d\n", c.f.Cores)
	users := "    # Who may run jobs in sold slots.\n    users: " + listed(c.t.Users) + "\n"
	found := given("    conf", text(c.q.Conf), "") + given("    prefix", several(c.q.Prefix), "")
	switch c.q.Driver {
	case "slurm":
		return "  slurm:\n    partition: " + quoted(c.f.Name) + "\n" + users + either(c.f.HoldBy == "job", "    # "+c.f.HoldWhy+`.
    # So a placeholder job holds a sold slot. Slurm does not promise when it runs: if it does
    # not run a minute after the slot's start, the buyer gets the money back. For true
    # reservations let this account be an operator, or set prefix, and hold_by: reservation.
    hold_by: job
`, "    hold_by: reservation\n") + "    # As Slurm says now; so the agent starts while Slurm is away.\n" + cores + found
	case "pbs":
		return "  pbs:\n" + users + cores + found
	case "local":
		return `  local:
    # How many may be sold, by all agents of this machine together. What runs here
    # beside the market needs cores too.
` + cores + given("    claims", text(c.q.Claims), "")
	case "swf":
		return "  swf:\n    log: " + quoted(c.q.Log) + "\n    base: 0\n"
	}
	return "  command:\n    program: " + quoted(c.q.Program) + "\n" + cores
}

func (c form) prices() string {
	return `
  # Credits per core-hour: the list price, at which every bid opens whatever the buyer
  # would pay, and the least, to which rivals may press it.
  start_price: ` + quoted(c.t.Start) + `
  minimum_price: ` + quoted(c.t.Least) + `

  # The banks and currencies that this site deals in.
` + either(c.t.Bank != "", "  pay:\n    - bank: "+quoted(c.t.Bank)+"\n      currency: "+quoted(c.t.Currency)+"\n",
		`  # 'ramp ca show agent.pem' prints a bank's ID. Nothing is sold without one.
  pay: []
`) + `
  # When a purchase is paid; metered: for the processor time that its program used.
  modes: [on-reservation, on-completion, metered]
`
}

func (c form) properties() string {
	return `
  # What its nodes are: a request for a property that is not given here is refused.
  properties:
` + given("    os", text(c.f.OS), "    # os: Linux\n") +
		given("    architecture", text(c.f.Arch), "    # architecture: x86_64\n") +
		given("    cpu_speed_mhz", number(c.f.CPUSpeed), "    # cpu_speed_mhz: 2400\n") +
		given("    ram_per_core_mb", number(c.f.RAMPerCore), "") +
		given("    node_cores", number(c.f.NodeCores), "") + `    # bandwidth_mbits: 10000
    # total_disk_gb: 1000
    # node_disk_gb: 100
` + given("    # Features that all nodes have", several(c.f.Features), "")
}

// jobs is about the programs of buyers.
func (c form) jobs() string {
	isLocal := c.q.Driver == "local"
	switch {
	case c.t.RunsPrograms():
		return `
  # Buyers may run any command in sold slots: docs/JOBS.md.` + either(isLocal, "", ` All nodes must see the
  # directory, and the accounts must be able to pass through it.`) + `
  jobs:
` + either(c.t.JobsDir != "", "    # Jobs run as other accounts, which cannot enter this directory.\n    dir: "+quoted(c.t.JobsDir)+"\n",
			either(isLocal, "", "    # dir: /shared/ramp-jobs\n")) +
			given("    uids", c.t.UIDs(), "") +
			given("    # Protections that this machine may lack; 'ramp resource check --isolation' tries them.\n    accept", several(c.t.Accepts(c.q.Driver)), "") +
			`    accounts:
      - {agent: "*",` + either(c.t.Account() != "", " user: "+quoted(c.t.Account())+",", "") + " commands: true}\n"
	case isLocal:
		return `
  # Without this no programs run in sold slots: docs/JOBS.md. 'ramp resource check
  # --isolation' tries whether they are contained.
  # jobs:
  #   accounts:
  #     - {agent: "*", commands: true}
`
	}
	return `
  # Without this no programs run in sold slots: docs/JOBS.md. On a cluster all nodes
  # must see the directory, and the accounts must be able to pass through it.
  # jobs:
  #   dir: /shared/ramp-jobs
  #   accounts:
  #     - {agent: "*", user: guest, commands: true}
`
}

// text, number and several are values in YAML, or empty without one.
func text(s string) string         { return either(s != "", quoted(s), "") }
func number(n int) string          { return either(n != 0, strconv.Itoa(n), "") }
func several(list []string) string { return either(len(list) > 0, listed(list), "") }
