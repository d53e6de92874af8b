package order_test

import (
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/order"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestAJobThatNoSiteHasSaysWhy(t *testing.T) {
	home, now := protocol.AgentID("s1@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), time.Now()
	none, some := control.JobAuction{}, control.JobAuction{Bids: []control.JobBidView{{Site: home}}}
	for want, v := range map[string]control.JobView{
		"s1 has not answered yet": {Home: home, State: message.JobQueued},
		"no site has bid for 2 modules of level low yet; the job stays on offer": {
			Home: home, State: message.JobAuction, Heard: now, Level: "low", Modules: control.JobModules{Least: 2}, Auctions: []control.JobAuction{none}},
		"": {Home: home, State: message.JobAuction, Heard: now, Auctions: []control.JobAuction{some, none}},
	} {
		if got := order.Unsold(v); got != want {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
		v.State = message.JobFailed
		if got := order.Unsold(v); got != "" {
			t.Errorf("of a job that has failed: %q", got)
		}
	}
	away := order.Unsold(control.JobView{Home: home, State: message.JobAuction, Heard: now.Add(-time.Hour)})
	if want := "s1 does not answer; it was last heard at "; len(away) <= len(want) || away[:len(want)] != want {
		t.Errorf("%q", away)
	}
}
