package rules_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/rfql/jobfile"
)

func id(name string) string { return name + "@" + strings.Repeat("a", 32) }

var good = `# All sites have the same bytes.
levels: [low, normal, high, urgent]
users:
  '*': low
  ` + id("ann") + `: urgent
sites:
  - {agent: ` + id("south") + `, centre: one}
  - {agent: ` + id("north") + `, centre: one}
  - agent: ` + id("west") + `
alpha: 1.5
minimum: 0.001
poll: 2s
transfer: {within: 8s, between: 1m}
`

func TestRulesAreRead(t *testing.T) {
	r, err := rules.Read([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	north, south, west := protocol.AgentID(id("north")), protocol.AgentID(id("south")), protocol.AgentID(id("west"))
	for what, same := range map[string]bool{
		"alpha":             r.Scale.Alpha == 1500,
		"gamma, by default": r.Scale.Gamma == rules.DefaultGamma,
		"minimum":           r.Scale.Minimum == 1,
		"poll":              r.Poll == 2*time.Second,
		"ann's level":       r.Allowed(protocol.AgentID(id("ann"))) == 4,
		"everybody's level": r.Allowed(protocol.AgentID(id("bob"))) == 1,
		"order of members":  r.Members()[0] == north,
		"a member":          r.Member(west) && !r.Member(protocol.AgentID(id("ann"))),
		"here":              r.Transfer(north, north, 1<<30) == 0,
		"within a centre":   r.Transfer(north, south, 1<<30) == 8*time.Second,
		"between centres":   r.Transfer(north, west, 1<<29) == 30*time.Second,
		"names":             r.Level("high") == 3 && r.Name(3) == "high" && r.Level("none") == 0,
	} {
		if !same {
			t.Errorf("%s differs: %+v", what, r)
		}
	}
	other, err := rules.Read([]byte(good + "\n"))
	if err != nil || other.Digest == r.Digest {
		t.Errorf("other bytes have the same digest: %v", err)
	}
}

func TestEveryFaultHasItsLine(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"[low, normal, high, urgent]", "[a, b, c, d, e]", "f:2: levels: want 1 to 4 names"},
		{"[low, normal, high, urgent]", "[low, low]", "f:2: level low is there already"},
		{"[low, normal, high, urgent]", "[low, normal, high, '?']", `f:2: level "?": want a name`},
		{": urgent", ": top", `f:5: level "top": want low, normal, high, urgent`},
		{"'*': low", "bob: low", "f:4: agent \"bob\": want NAME@FINGERPRINT"},
		{"agent: " + id("north"), "agent: " + id("south"), "f:8: two sites are named south"},
		{"agent: " + id("west"), "centre: x", "f:9: a site without an agent"},
		{"agent: " + id("west"), "agnet: x", `f:9: unknown key "agnet"; did you mean "agent"?`},
		{"alpha: 1.5", "alpha: 0", `f:10: alpha "0": want a number from 0.001 to 1000`},
		{"alpha: 1.5", "alpha: 1.2345", `f:10: alpha "1.2345"`},
		{"alpha: 1.5", "alpha: -1", `f:10: alpha "-1"`},
		{"poll: 2s", "poll: 2 s", `f:12: poll "2 s": want a duration from 0s to 24h0m0s`},
		{"poll: 2s", "pol: 2s", `f:12: unknown key "pol"; did you mean "poll"?`},
		{"between: 1m", "behind: 1m", `f:13: unknown key "behind"`},
	} {
		_, err := rules.Read([]byte(strings.Replace(good, x.old, x.new, 1)))
		var faults jobfile.Faults
		if !errors.As(err, &faults) || !strings.HasPrefix(faults.In("f"), x.want) {
			t.Errorf("%q: %v, want %s", x.new, err, x.want)
		}
	}
	for _, text := range []string{"", "[]", "levels: [low]", "levels: [low]\nsites: [{agent: " + id("a") + "}]", "\x00", "a: [", "a: b\n---\nc: d"} {
		if _, err := rules.Read([]byte(text)); err == nil || strings.Contains(err.Error(), "\n") && strings.Count(text, "\n") == 0 {
			t.Errorf("%q: %v, want one line", text, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add("levels: &a [x]\nsites: *a\nusers: *a\nalpha: .5")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := rules.Read([]byte(text))
		var faults jobfile.Faults
		switch {
		case err == nil:
			if len(r.Levels) == 0 || len(r.Sites) == 0 || r.Scale.Alpha <= 0 || r.Mean <= 0 || r.Level(r.Levels[0]) != 1 {
				t.Fatalf("accepted: %+v", r)
			}
		case !errors.As(err, &faults):
			t.Fatalf("not faults: %v", err)
		}
		for _, x := range faults {
			if strings.ContainsAny(x.Text, "\n\x00") {
				t.Fatalf("not one line: %q", x.Text)
			}
		}
	})
}
