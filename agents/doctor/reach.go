package doctor

import (
	"context"
	"fmt"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/mesh"
	"ramp/agents/words"
)

// reachHelp is how an agent becomes reachable directly.
const reachHelp = "to be reached directly, forward a TCP and UDP port to this machine and give its outside address under 'announce' (docs/OPERATIONS.md, Behind NAT and firewalls)"

// checkReach reports how others reach the agent, as its daemon knows.
func (p *examination) checkReach(ctx context.Context) {
	if p.daemon == nil || config.OnlyLocal(p.cfg.Listen) && len(p.cfg.Bootstrap) == 0 {
		return
	}
	var s control.LiveStatus
	if err := control.Agent.Ask(ctx, p.daemon, struct{}{}, &s); err != nil || s.Standby() {
		return // the check of the daemon reports it
	}
	switch words := ReachWords(s.Reach); s.Reach.Kind {
	case mesh.ReachNone:
		p.bad("reach", reachHelp+"; or join through an agent that relays", "%s", words)
	case mesh.ReachRelayed:
		p.warn("reach", reachHelp, "%s", words)
	default:
		p.good("reach", "%s", words)
	}
}

// ReachWords is how others reach an agent, in words.
func ReachWords(r control.Reach) string {
	switch r.Kind {
	case mesh.ReachPublic:
		if r.Serves {
			return fmt.Sprintf("directly; relays for %s, %s", words.Plural(r.Reservations, "agent"), words.Plural(r.Circuits, "connection"))
		}
		return "directly"
	case mesh.ReachPunched:
		return fmt.Sprintf("through %s, and directly over paths punched through NAT (%d so far, %d failed)", words.Names(r.Relays, " and "), r.Punched, r.Unpunched)
	case mesh.ReachRelayed:
		return fmt.Sprintf("only through %s; a relay carries files up to %d MiB", words.Names(r.Relays, " and "), mesh.RelayData>>20)
	case mesh.ReachNone:
		return "not at all: others tried its addresses in vain, and no connected agent relays"
	case mesh.ReachNetwork:
		return "from its own network; nobody elsewhere has tried its addresses"
	}
	return "from this machine only"
}
