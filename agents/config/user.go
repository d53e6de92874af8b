package config

import (
	"time"

	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// minHold is the shortest hold that leaves time to settle: the clocks of the bank and of the
// seller may each differ by one skew.
const minHold = 3 * protocol.ClockSkew

// checkCalls refuses rounds that call more sellers than the mesh can connect to.
func (u *User) checkCalls() error {
	const most = mesh.MaxConnections / 2
	if u.CallAtMost < 0 || u.CallAtMost > most {
		return exit.Fail(exit.Usage, "", "configuration: user.call_at_most %d: want 0 (%d) or 1..%d", u.CallAtMost, protocol.MaxGossipless, most)
	}
	if u.ResponseBudget < user.AskEverybody || u.ResponseBudget > most {
		return exit.Fail(exit.Usage, "", "configuration: user.response_budget %d: want %d (everybody), 0 (%d) or 1..%d",
			u.ResponseBudget, user.AskEverybody, auction.DefaultBudget, most)
	}
	return nil
}

// UserRole converts the configuration for the role.
func (c *Config) UserRole(cred *identity.Credential, trust *identity.Trust) (user.Config, error) {
	role := user.Config{Credential: cred, Trust: trust}
	if u := c.User; u != nil {
		role.Hold, role.Settle, role.CallAtMost, role.Budget = time.Duration(u.Hold), time.Duration(u.Settle), u.CallAtMost, u.ResponseBudget
		role.AskUsage = u.AskUsage
		if err := u.checkCalls(); err != nil {
			return role, err
		}
		if u.Hold != 0 && (role.Hold < minHold || role.Hold > reserve.MaxHold) {
			return role, exit.Fail(exit.Usage, "", "configuration: user.hold %s: want %s..%s", role.Hold, minHold, reserve.MaxHold)
		}
		if role.Settle > protocol.MaxSettleAhead {
			return role, exit.Fail(exit.Usage, "", "configuration: user.settle %s: want at most %s", role.Settle, protocol.MaxSettleAhead)
		}
		var err error
		if role.Terms, err = payTerms("user.pay", u.Pay); err != nil {
			return role, err
		}
		if u.Mode != "" {
			if role.Mode, err = ParseMode(u.Mode); err != nil {
				return role, exit.Fail(exit.Usage, "", "configuration: user.mode: %w", err)
			}
		}
	}
	return role, nil
}
