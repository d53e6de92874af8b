package market

import (
	"ramp/agents/sim"
	"ramp/protocol"
)

// maxWaiting is how many outputs of a role may wait for the disk: the live
// agent's bound.
const maxWaiting = 1024

// sized is a role that says how much it keeps in memory, and the bounds of it.
// Every role of an honest party is one.
type sized interface{ Sizes() []protocol.Size }

// sizesPerTick is how many hosts are looked at in one tick; in a larger market
// the others' turn comes in the next ones.
const sizesPerTick = 500

// checkSizes: nothing that an agent keeps in memory, and nothing that waits for
// its disk, is more than its bound.
func (c *Checks) checkSizes() {
	if c.m.World.Elapsed() < peace {
		return // accounts are being opened, all at once
	}
	c.ticks++
	hosts := c.m.World.Hosts()
	stride := 1 + len(hosts)/sizesPerTick
	for i := c.ticks % stride; i < len(hosts); i += stride {
		c.checkSize(hosts[i])
	}
}

func (c *Checks) checkSize(h *sim.Host) {
	c.check(Bounded, h.Waiting() <= maxWaiting, "%s: %d outputs wait for the disk, at most %d", h.Name, h.Waiting(), maxWaiting)
	if !h.Up() || !c.m.honest(h.ID()) {
		return // a dishonest one may fill its own memory
	}
	role, ok := h.Role().(sized)
	c.check(Bounded, ok, "%s does not say how much it keeps", h.Name)
	if !ok {
		return
	}
	for _, s := range role.Sizes() {
		if s.N > s.Most {
			c.check(Bounded, false, "%s keeps %d %s, at most %d", h.Name, s.N, s.Of, s.Most)
		}
	}
}
