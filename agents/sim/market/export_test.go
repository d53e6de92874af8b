package market

import "ramp/agents/sim"

// Sites are the sellers, in order.
func (m *Market) Sites() []*Site { return m.sites }

// Bank is the bank's first host; a second one shares its disk.
func (m *Market) Bank() *sim.Host { return m.bank }

// Counts are how often each invariant was checked.
func (c *Checks) Counts() map[string]int { return c.audit.counts }

// Over counts the overbooked slots that were granted, and those that were lost.
func (c *Cluster) Over() (granted, lost int) { return c.overbooked.granted, c.overbooked.lost }
