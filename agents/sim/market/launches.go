package market

import (
	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
)

// launchesOf lets everybody run anything on a site.
func launchesOf(site string) launch.Config {
	return launch.Config{Address: site, Root: "/jobs", Policy: launch.Policy{
		Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {Commands: true}},
	}}
}

// program draws what an order runs; nil: nothing.
func (m *Market) program(u *User, mode protocol.Mode) *message.Program {
	if mode == protocol.ModeOnCompletion || !u.runs.Of(m.cfg.Launches) {
		return nil
	}
	return &message.Program{Command: []string{"/bin/job"}}
}

// control has an owner do something to one of its last programs, now and then.
func (m *Market) control(u *User) {
	if m.cfg.Launches == 0 || len(u.bought) == 0 || u.runs.N(5) > 0 {
		return
	}
	verbs := []message.LaunchVerb{message.VerbKill, message.VerbSuspend, message.VerbResume, message.VerbStatus}
	id := u.bought[len(u.bought)-1-u.runs.N(min(5, len(u.bought)))]
	m.tell(u, message.RunControl{ID: id, Verb: verbs[u.runs.N(len(verbs))]})
}
