package market

import (
	"ramp/agents/sim"
	"ramp/protocol"
)

// maxWaiting limits the outputs of a role that wait for the disk, as in the live agent.
const maxWaiting = 1024

// sizeChecks owns the turn in which the hosts' memory is checked.
type sizeChecks struct {
	audit *audit
	ticks int
}

// sized is a role that reports how much it keeps in memory, and the limits. Every role of
// an honest party is one.
type sized interface{ Sizes() []protocol.Size }

// sizesPerTick is how many hosts are checked in one tick. In a larger market the others
// follow in the next ones.
const sizesPerTick = 500

// check checks that agents keep their limits of memory and of outputs waiting for the disk.
func (c *sizeChecks) check() {
	if c.audit.m.World.Elapsed() < peace {
		return // all accounts are being opened at once
	}
	c.ticks++
	hosts := c.audit.m.World.Hosts()
	stride := 1 + len(hosts)/sizesPerTick
	for i := c.ticks % stride; i < len(hosts); i += stride {
		c.checkHost(hosts[i])
	}
}

func (c *sizeChecks) checkHost(h *sim.Host) {
	c.audit.check(Bounded, h.Waiting() <= maxWaiting, "%s: %d outputs wait for the disk; the limit is %d", h.Name, h.Waiting(), maxWaiting)
	if !h.Up() || !c.audit.m.honest(h.ID()) {
		return // a dishonest agent may fill its own memory
	}
	role, ok := h.Role().(sized)
	c.audit.check(Bounded, ok, "%s does not report its sizes", h.Name)
	if !ok {
		return
	}
	for _, s := range role.Sizes() {
		if s.N > s.Most {
			c.audit.check(Bounded, false, "%s keeps %d %s; the limit is %d", h.Name, s.N, s.Of, s.Most)
		}
	}
}
