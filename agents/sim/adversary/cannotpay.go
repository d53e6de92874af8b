package adversary

import (
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// cannotPay is a user that buys like others but has only one credit.
func cannotPay(s *market.Stage) { buyer(s, s.Name, protocol.Credit, nil) }
