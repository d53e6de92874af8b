package wan

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Bounds of a WAN.
const (
	MaxHosts  = 250             // of one WAN
	MaxQueued = 8192            // packets in flight to one host; further ones are dropped
	MaxDelay  = 5 * time.Minute // of a link, jitter included
	mtu       = 1500            // bytes of a packet
)

// Config is the initial state of a WAN.
type Config struct {
	Hosts int          // 1..MaxHosts
	Net   netip.Prefix // IPv4, at most /24 long; zero: 10.88.0.0/16. Host i has address i+1 in it
	Link  Link         // of every pair
	Seed  uint64       // of losses and jitter
	// NAT of each host, in order; the others have none. Hosts behind one need a Net in
	// 128.0.0.0/1.
	NAT []NAT
	// Forget is how long after the last packet a NAT forgets a mapping; 0: never.
	Forget time.Duration
}

// Validate names the field that is wrong and its limits.
func (c Config) Validate() error {
	switch {
	case c.Hosts < 1 || c.Hosts > MaxHosts:
		return fmt.Errorf("wan: %d hosts: want 1..%d", c.Hosts, MaxHosts)
	case !c.Net.Addr().Is4() || c.Net.Bits() > 24 || c.Net != c.Net.Masked():
		return fmt.Errorf("wan: network %s: want one of IPv4 with at least 8 bits for hosts", c.Net)
	case len(c.NAT) > c.Hosts:
		return fmt.Errorf("wan: %d kinds of NAT for %d hosts", len(c.NAT), c.Hosts)
	case slices.ContainsFunc(c.NAT, NAT.translates) && c.Net.Addr().As4()[0] < 128:
		return fmt.Errorf("wan: network %s: want one of 128.0.0.0/1, where hosts behind a NAT send everything to their router", c.Net)
	case c.Forget < 0:
		return fmt.Errorf("wan: forgetting mappings after %s: want 0s or more", c.Forget)
	}
	return c.Link.Validate()
}

// Link is one direction between two hosts.
type Link struct {
	Delay  time.Duration // of every packet
	Jitter time.Duration // maximum additional delay, evenly distributed; packets of a link stay in order
	Loss   float64       // share of packets that are lost, 0..1
	Cut    bool          // packets are dropped silently
}

// Validate names the field that is wrong and its limits.
func (l Link) Validate() error {
	switch {
	case l.Delay < 0 || l.Jitter < 0 || l.Delay > MaxDelay || l.Jitter > MaxDelay-l.Delay:
		return fmt.Errorf("wan: a delay of %s with a jitter of %s: want 0s..%s together", l.Delay, l.Jitter, MaxDelay)
	case !(l.Loss >= 0 && l.Loss <= 1):
		return fmt.Errorf("wan: loss %v: want 0..1", l.Loss)
	}
	return nil
}
