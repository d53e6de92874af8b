package adversary

import (
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// cannotPay is a user that buys as others do and has one credit.
func cannotPay(s *market.Stage) { buyer(s, s.Name, protocol.Credit, nil) }
