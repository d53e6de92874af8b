package doctor

import (
	"strings"
	"testing"

	"ramp/agents/control"
	"ramp/agents/mesh"
	"ramp/protocol"
)

func TestReachIsSaidInWords(t *testing.T) {
	relays := []protocol.AgentID{"bank@x", "site@y"}
	for _, c := range []struct {
		reach control.Reach
		want  string
	}{
		{control.Reach{Kind: mesh.ReachPublic}, "directly"},
		{control.Reach{Kind: mesh.ReachPublic, Serves: true, Reservations: 2, Circuits: 1}, "relays for 2 agents, 1 connection"},
		{control.Reach{Kind: mesh.ReachPunched, Relays: relays, Punched: 3, Unpunched: 1}, "through bank and site, and directly over paths punched through NAT (3 so far, 1 failed)"},
		{control.Reach{Kind: mesh.ReachRelayed, Relays: relays[:1]}, "only through bank; a relay carries files up to 64 MiB"},
		{control.Reach{Kind: mesh.ReachNetwork}, "from its own network"},
		{control.Reach{Kind: mesh.ReachNone}, "not at all"},
		{control.Reach{Kind: mesh.ReachLocal}, "from this machine only"},
	} {
		if got := ReachWords(c.reach); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reach.Kind, got, c.want)
		}
	}
}
