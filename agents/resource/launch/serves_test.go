package launch_test

import (
	"regexp"
	"testing"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
)

// What is said before anything is bought is what a launch meets afterwards.
func TestServes(t *testing.T) {
	greet := map[string]launch.App{"greet": {Command: []string{"/bin/echo", "{who}"}, Params: map[string]*regexp.Regexp{"who": regexp.MustCompile("[a-z]+")}}}
	some := map[protocol.AgentID]launch.Account{"ann": {User: "ann", Commands: true}, "bob": {User: "bob"}}
	for name, c := range map[string]struct {
		policy launch.Policy
		buyer  protocol.AgentID
		intent message.Intent
		why    string
	}{
		"a site without accounts":        {launch.Policy{Apps: greet}, "ann", message.Intent{App: "greet"}, "this site runs no programs"},
		"a buyer without an account":     {launch.Policy{Apps: greet, Accounts: some}, "eve", message.Intent{App: "greet"}, "this site runs no programs for eve"},
		"an account for everybody":       {launch.Policy{Apps: greet, Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {}}}, "eve", message.Intent{App: "greet"}, ""},
		"a command of who may":           {launch.Policy{Apps: greet, Accounts: some}, "ann", message.Intent{}, ""},
		"a command of who may not":       {launch.Policy{Apps: greet, Accounts: some}, "bob", message.Intent{}, "this site runs its applications only: greet"},
		"a command where there are none": {launch.Policy{Accounts: some}, "bob", message.Intent{}, "this site runs its applications only: there are none"},
		"an application":                 {launch.Policy{Apps: greet, Accounts: some}, "bob", message.Intent{App: "greet"}, ""},
		"another application":            {launch.Policy{Apps: greet, Accounts: some}, "ann", message.Intent{App: "paint"}, `no application "paint", this site has: greet`},
		"as much input as there may be":  {launch.Policy{Accounts: some, MaxInput: 10}, "ann", message.Intent{Input: 10}, ""},
		"more input":                     {launch.Policy{Accounts: some, MaxInput: 10}, "ann", message.Intent{Input: 11}, "inputs of 11 bytes, this site takes at most 10"},
		"as much as is usual":            {launch.Policy{Accounts: some}, "ann", message.Intent{Input: launch.DefaultMaxInput}, ""},
		"more than is usual":             {launch.Policy{Accounts: some}, "ann", message.Intent{Input: launch.DefaultMaxInput + 1}, "inputs of 1073741825 bytes, this site takes at most 1073741824"},
	} {
		why := c.policy.Serves(c.buyer, c.intent)
		if why == nil {
			why = &protocol.Reason{Code: protocol.CodeProgram}
		}
		if why.Note != c.why || why.Code != protocol.CodeProgram {
			t.Errorf("%s: %+v, want %q", name, why, c.why)
		}
	}
}
