package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// The steps of a run that its buyer can see, in order.
var runSteps = []string{
	"bidding", "voting", "confirming", "deciding", "settled", "asked", "staging", "ready", "submitting", "submitted", "collecting", "done",
}

// Buyer and seller are killed at every step from the reservation to the collected
// outputs of a program that really runs: afterwards one slot is reserved and paid
// for, the program has run once, and its output is there.
func TestKilledAtEveryStepOfARun(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"voting seller", "settled seller", "staging seller", "submitting seller", "submitted seller", "collecting seller"},
		{"confirming user", "asked user", "staging user", "ready user", "submitted user", "done user"},
	}
	if !testing.Short() {
		rows = append(rows,
			[]string{"confirming seller", "deciding seller", "asked seller", "ready seller", "submitted seller", "done seller"},
			[]string{"deciding user", "staging seller", "ready seller", "submitting user", "submitted seller", "collecting user"})
	}
	m := startRunMarket(t)
	for _, row := range rows {
		t.Run(strings.ReplaceAll(strings.Join(row, ","), " ", "-"), func(t *testing.T) {
			r := newKilledRun(t, m)
			r.bought(row)
			r.verify()
		})
	}
	for _, name := range m.sellers {
		select {
		case <-m.daemons[name].ended:
			t.Fatalf("%s has ended: %v\n%s", name, m.daemons[name].err, m.daemons[name].lastLines())
		default:
		}
	}
	m.settleDown(t)
	m.verify(t)
}

// startRunMarket is a market of sites that run programs: two cores each.
func startRunMarket(t *testing.T) *market {
	t.Helper()
	me, err := user.Current()
	must(t, err)
	dir, err := os.MkdirTemp("", "ramp-test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m, err := newMarket(dir, nil, "atlas", "boreas", "castor")
	must(t, err)
	t.Cleanup(func() { m.endOf(t) })
	m.sellers = []string{"atlas", "boreas", "castor"}
	for _, name := range m.sellers {
		path := filepath.Join(m.path(name), "config.yaml")
		b, err := os.ReadFile(path)
		must(t, err)
		s := strings.Replace(string(b), "driver: swf\n  swf: {log: idle.swf, base: 1000}", "driver: local\n  local: {claims: claims, cores: 2}\n  lead: 1s", 1)
		s += fmt.Sprintf("  jobs:\n    accept: [namespaces, seccomp, cgroup, uids]\n    accounts:\n      - {agent: \"*\", user: %s, commands: true}\n", me.Username)
		must(t, os.WriteFile(path, []byte(s), 0o600))
	}
	must(t, m.serve("bank"))
	for _, name := range append([]string{"user"}, m.sellers...) {
		must(t, m.bank("/v1/account", map[string]any{"account": m.ids[name], "name": name, "limit": 0}))
	}
	must(t, m.bank("/v1/credit", map[string]any{"account": "user", "amount": 1000000}))
	for _, name := range append([]string{"user"}, m.sellers...) {
		must(t, m.serve(name))
	}
	m.meet(t)
	return m
}

// killedRun is one program that is bought and run while agents are killed.
type killedRun struct {
	t      *testing.T
	m      *market
	dir    string // where the program notes that it runs, beside everything else
	input  []byte
	id     string
	seller string
}

func newKilledRun(t *testing.T, m *market) *killedRun {
	r := &killedRun{t: t, m: m, dir: t.TempDir(), input: make([]byte, 4<<20)}
	for i := range r.input {
		r.input[i] = byte(rand.Uint32())
	}
	must(t, os.Chmod(r.dir, 0o777))
	must(t, os.WriteFile(filepath.Join(r.dir, "input"), r.input, 0o600))
	return r
}

// maxTries is how often a purchase that was killed before it was signed is made
// anew.
const maxTries = 5

// bought buys and kills until the run is over.
func (r *killedRun) bought(kills []string) {
	for range maxTries {
		r.m.bought++
		r.id = fmt.Sprintf("p%d", r.m.bought)
		r.order()
		if kills = r.follow(kills); r.step() == "done" {
			return
		}
	}
	r.t.Fatalf("nothing was bought in %d tries", maxTries)
}

// order gives the order, and stays until somebody has taken it.
func (r *killedRun) order() {
	sum := sha256.Sum256(r.input)
	input := message.RunInput{Source: filepath.Join(r.dir, "input"), File: protocol.StagedFile{Path: "in", Size: int64(len(r.input)), SHA256: hex.EncodeToString(sum[:])}}
	call := map[string]any{
		"id": r.id, "name": "run", "document": runDocument(), "options": message.Options{Objective: protocol.ObjectiveTime},
		"program": message.Program{
			Command: []string{"/bin/sh", "-c", `echo "$0"; sleep 0.7; cat in in >out`, r.dir}, Inputs: []message.RunInput{input},
		},
	}
	resp, err := post(context.Background(), r.m.path("user"), "/v1/buy", call)
	must(r.t, err)
	r.t.Cleanup(func() { _ = resp.Body.Close() })
}

// runDocument asks for a core for five minutes, as soon as may be.
func runDocument() string {
	doc := strings.Replace(document(requestXML("run", 1, 60)), "<WallTime>60<", "<WallTime>5<", 1)
	from := time.Now().UTC().Add(-time.Minute)
	at := strings.Index(doc, "<StartDate>")
	end := strings.Index(doc, "</StartTime>")
	return doc[:at] + "<StartDate>" + from.Format(time.DateOnly) + "</StartDate><StartTime>" + from.Format("15:04:05Z") + doc[end:]
}

// step is how far it is; "": it is over, and nothing was bought.
func (r *killedRun) step() string {
	list, err := r.m.purchases()
	if err != nil {
		return "bidding" // it begins again
	}
	i := slices.IndexFunc(list, func(p message.Purchase) bool { return p.ID == r.id })
	if i < 0 {
		return "bidding"
	}
	p := list[i]
	if len(p.Units) > 0 {
		r.seller = p.Units[0].Resource
	}
	if !p.Settled {
		if slices.Contains(runSteps, p.State) {
			return p.State
		}
		return ""
	}
	var run message.Run
	if call(context.Background(), r.m.path("user"), "/v1/run", map[string]any{"id": r.id}, &run) != nil || len(run.Units) == 0 {
		return "settled"
	}
	if stage := string(run.Units[0].Status.Stage); stage != "failed" {
		return stage
	}
	r.t.Fatalf("the run failed: %+v", run)
	return ""
}

// follow kills whoever is due at each step, or after it if it went by unseen, and
// returns who was not killed.
func (r *killedRun) follow(kills []string) []string {
	r.t.Helper()
	must(r.t, until(untilTime, func() (bool, error) {
		step := r.step()
		if step == "" {
			return true, nil
		}
		for len(kills) > 0 && r.due(kills[0], step) {
			_, who, _ := strings.Cut(kills[0], " ")
			if who == "seller" {
				who = r.seller
			}
			r.t.Logf("%s is killed, it is %s", who, step)
			kills = kills[1:]
			r.m.daemons[who].kill()
			r.m.restart(r.t, who)
			step = r.step()
		}
		return step == "done" && len(kills) == 0, errors.New("it is " + step)
	}))
	return kills
}

func (r *killedRun) due(kill, step string) bool {
	at, who, _ := strings.Cut(kill, " ")
	return slices.Index(runSteps, step) >= slices.Index(runSteps, at) && (who != "seller" || r.seller != "")
}

// printed is how often the jobs of all sites have printed a line. A contained program can
// leave its mark nowhere else.
func (m *market) printed(t *testing.T, line string) (n int) {
	t.Helper()
	files, err := filepath.Glob(m.path("*/jobs/*/stdout"))
	must(t, err)
	for _, name := range files {
		b, err := os.ReadFile(name)
		must(t, err)
		n += bytes.Count(b, []byte(line+"\n"))
	}
	return n
}

// verify: the program has run once, and its output is what it made of its input.
func (r *killedRun) verify() {
	r.t.Helper()
	var run message.Run
	must(r.t, call(context.Background(), r.m.path("user"), "/v1/run", map[string]any{"id": r.id}, &run))
	if !run.Over || run.Exit != 0 {
		r.t.Fatalf("the run ended as %+v", run)
	}
	if n := r.m.printed(r.t, r.dir); n != 1 {
		r.t.Errorf("the program began %d times, want once", n)
	}
	out := filepath.Join(r.dir, "got")
	must(r.t, call(context.Background(), r.m.path("user"), "/v1/run/fetch", map[string]any{"id": r.id, "dir": out}, &run))
	got, err := os.ReadFile(filepath.Join(out, "out"))
	if err != nil || !bytes.Equal(got, append(slices.Clone(r.input), r.input...)) {
		r.t.Errorf("fetched %d bytes (%v), want the input twice, %d bytes", len(got), err, 2*len(r.input))
	}
	if list, err := os.ReadDir(out); err != nil || len(list) != 1 {
		r.t.Errorf("fetched %v (%v), want the output alone", list, err)
	}
	claims, err := os.ReadFile(filepath.Join(r.m.path(r.seller), "claims", "claims.json"))
	if err != nil || bytes.Count(claims, []byte(run.Units[0].Slot.Start.Format("2006-01-02T15:04:05"))) > 1 {
		r.t.Errorf("%s has claimed more than was sold (%v): %s", r.seller, err, claims)
	}
}
