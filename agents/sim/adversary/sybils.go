package adversary

import (
	"fmt"

	"ramp/agents/sim/market"
)

// sybils are identities of one owner, one for each honest site, that underbid and then
// refuse. Four of this kind outnumber the honest sites four to one.
func sybils(s *market.Stage) {
	for i := range s.Config().Resources {
		underbidder(s, fmt.Sprintf("%s-%d", s.Name, i+1))
	}
}
