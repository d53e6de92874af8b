package launch_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The transcripts are programs in bought units, as buyer and sellers tell them.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcript", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.do(t, d) })
	})
}

// script is a pair in a transcript.
type script struct {
	pair *pair
	said strings.Builder
	last map[string]string // how each launch and the run was told last
}

func (s *script) do(t *testing.T, d *datadriven.TestData) string {
	a := map[string]string{}
	for _, arg := range d.CmdArgs {
		a[arg.Key] = strings.Join(arg.Vals, ",")
	}
	s.said.Reset()
	switch d.Cmd {
	case "run":
		s.begin(t, a)
	case "pass":
		d, err := time.ParseDuration(firstKey(a))
		if err != nil {
			t.Fatal(err)
		}
		s.pair.until(s.pair.now.Add(d))
	case "clock": // is set at a site or the buyer
		for name, by := range a {
			d, err := time.ParseDuration(by)
			if err != nil {
				t.Fatal(err)
			}
			h := s.pair.host(protocol.AgentID(name))
			h.ahead, h.alarm = d, s.pair.now
		}
	case "order":
		s.pair.owner(message.LaunchVerb(firstKey(a)))
		s.pair.quiet()
	case "restart":
		h := s.pair.host(protocol.AgentID(firstKey(a)))
		h.die1()
		s.pair.start(h)
		s.pair.quiet()
	case "batch":
		s.batch(a)
	case "unit":
		s.pair.sold[0].unit.State = reserve.ClaimState(a["state"])
		s.pair.sold[0].unit.Reported = a["reported"] != ""
	case "say":
		s.stranger(a)
	case "jobs":
		s.jobs()
	case "kept":
		run := s.pair.run()
		fmt.Fprintf(&s.said, "for %s, given up %t\n", run.Units[0].Status.Keep.Sub(s.pair.now), run.Collected)
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	return s.said.String()
}

func firstKey(a map[string]string) string {
	for k, v := range a {
		if v == "" {
			return k
		}
	}
	return ""
}

func (s *script) begin(t *testing.T, a map[string]string) {
	units := 1
	if n, err := strconv.Atoi(a["units"]); err == nil {
		units = n
	}
	program := message.Program{App: a["app"]}
	if a["command"] != "" {
		program.Command = []string{a["command"]}
	}
	if name, value, ok := strings.Cut(a["param"], ":"); ok {
		program.Params = []message.Param{{Name: name, Value: value}}
	}
	for _, name := range strings.FieldsFunc(a["in"], func(r rune) bool { return r == ',' }) {
		program.Inputs = append(program.Inputs, message.RunInput{File: protocol.StagedFile{Path: name, Size: 10}, Source: a["source"]})
	}
	policy := open()
	if a["policy"] == "apps" {
		policy.Accounts = map[protocol.AgentID]launch.Account{launch.Everybody: {User: "guest"}}
		policy.Apps = map[string]launch.App{"greet": {Command: []string{"/bin/echo", "{who}"}, Params: map[string]*regexp.Regexp{"who": regexp.MustCompile("[a-z]+")}}}
	}
	if a["policy"] == "none" {
		policy.Accounts = nil
	}
	s.last = map[string]string{}
	s.pair = &pair{}
	p := newPairTold(t, units, program, policy, s.tell)
	s.pair = p
	for i := range p.batches {
		p.batches[i].length, p.batches[i].exit = time.Minute, i
	}
	if a["wait"] == "" {
		p.quiet()
	}
}

func (s *script) batch(a map[string]string) {
	for _, b := range s.pair.batches {
		b.away, b.mute, b.refuses = a["away"] != "", a["mute"] != "", a["refuses"]
		if a["forget"] != "" {
			for _, j := range b.jobs {
				j.gone = true
			}
		}
	}
	for _, d := range s.pair.depots {
		d.mute, d.why = a["nofiles"] != "", a["noplace"]
	}
}

// stranger has somebody say something to the first site.
func (s *script) stranger(a map[string]string) {
	h := s.pair.sites[0]
	m := protocol.Message{
		Performative: protocol.Request, Sender: protocol.AgentID(a["from"]), Receivers: []protocol.AgentID{h.id}, Conversation: "x", ReplyWith: "q",
		Body: message.Launch{Contract: protocol.ContractID(a["contract"]), ID: a["id"], Command: []string{a["command"]}},
	}
	if a["verb"] != "" {
		m.Body = message.LaunchOrder{Contract: protocol.ContractID(a["contract"]), ID: a["id"], Verb: message.LaunchVerb(a["verb"])}
	}
	s.tell(m.Sender, m)
	s.pair.deliver(packet{to: h, m: m})
	s.pair.quiet()
}

// jobs lists what the batch systems know.
func (s *script) jobs() {
	for _, b := range s.pair.batches {
		for _, j := range b.sorted() {
			fmt.Fprintf(&s.said, "%s %q as %s: began %d times, %s\n", j.job.ID, j.job.Argv, j.job.User, j.begun, j.status.State)
			for _, e := range j.job.Env {
				if strings.Contains(e, "UNIT") {
					fmt.Fprintf(&s.said, "  %s\n", e)
				}
			}
		}
	}
}

// tell writes what somebody says, when it is news.
func (s *script) tell(from protocol.AgentID, m protocol.Message) {
	words, of := "", ""
	switch b := m.Body.(type) {
	case message.Launch:
		words = fmt.Sprintf("launch %s %q %s, %d inputs", b.ID, b.Command, b.App, len(b.Inputs))
	case message.LaunchOrder:
		if words = string(b.Verb) + " " + b.ID; b.Verb == message.VerbStatus {
			return
		}
	case message.LaunchStatus:
		of, words = b.ID, statusWords(b)
	case message.RunProgress:
		of, words = "run", fmt.Sprintf("the run is %s, over %t, exit %d", b.Run.State, b.Run.Over, b.Run.Exit)
	case message.Refusal:
		words = fmt.Sprintf("no: %s: %s", b.Reasons[0].Code, b.Reasons[0].Note)
	case message.Submit:
		words = "submit " + b.Job.ID
	case message.Signal:
		words = string(b.Verb) + " " + b.ID
	case message.Prepare:
		words = "prepare " + b.Job
	case message.StageIn, message.StageStop, message.JobQuery, message.Collect, message.Discard:
		return
	}
	if of != "" && s.last[of] == words {
		return
	}
	s.last[of] = words
	now := noon
	if s.pair != nil && !s.pair.now.IsZero() {
		now = s.pair.now
	}
	to := "owner"
	if len(m.Receivers) > 0 && m.Receivers[0] != protocol.LocalControl {
		to = string(m.Receivers[0])
	}
	fmt.Fprintf(&s.said, "%s %s -> %s: %s\n", now.Format("15:04:05"), from, to, words)
}

func statusWords(b message.LaunchStatus) string {
	words := fmt.Sprintf("%s is %s", b.ID, b.Stage)
	if b.Missing > 0 {
		words += fmt.Sprintf(", %d missing", b.Missing)
	}
	if b.Job.State != "" {
		words += fmt.Sprintf(", job %s %d", b.Job.State, b.Job.Exit)
	}
	if b.Why != "" {
		words += ": " + b.Why
	}
	return words
}
