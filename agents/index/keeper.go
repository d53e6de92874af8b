package index

import (
	"time"

	"ramp/protocol"
)

// Keeper puts the parts of an index around an agent's role. The role is loaded again
// after a failed write; the Keeper stays, and so do the records that others have brought.
type Keeper struct {
	Self   Home
	Serves bool          // keeps an index for others
	Sells  *SellerConfig // of a site; nil: the agent sells nothing

	server *Server
	seller *Seller
}

// Around returns the role with the parts around it, and its first Output.
func (k *Keeper) Around(now time.Time, role Role, first protocol.Output) (Role, protocol.Output) {
	if k.Sells != nil {
		if k.seller == nil {
			k.seller = &Seller{cfg: *k.Sells, homes: newHomes(), pace: newPace(), lacking: map[protocol.AgentID]bool{}}
		}
		k.seller.Role, role = role, k.seller
		first = k.seller.pass(now, first)
	}
	if !k.Serves {
		return role, first
	}
	if k.server == nil {
		k.server, _ = NewServer(k.Self, role, now)
	}
	k.server.Role = role
	return k.server, k.server.pass(now, first)
}

// Through calls the inner role, whose answer passes through the seller's part.
func (s *Seller) Through(now time.Time, call func(inner any) protocol.Output) protocol.Output {
	return s.pass(now, call(s.Role))
}

// Through calls the inner role, whose answer passes through the server's part.
func (s *Server) Through(now time.Time, call func(inner any) protocol.Output) protocol.Output {
	return s.pass(now, call(s.Role))
}

// Stand is what an index holds and has done, for its owner.
type Stand struct {
	Records int // that it keeps
	Servers int // other indexes that are known
	Market  int // sellers of the market, as far as this index knows
	Brought int // records, since the start
	Refused int // of them
	Queries int // answered
	Fetched int // records that users were sent
	Dropped int // messages beyond their sender's allowance
}

// Stand returns that; nil: the agent keeps no index. It is called by the owner of the role.
func (k *Keeper) Stand(now time.Time) *Stand {
	if k.server == nil {
		return nil
	}
	s := k.server
	c := s.counts
	return &Stand{len(s.table.by), len(s.homes.list(now, false)), s.market(now), c.Records, c.Refused, c.Queries, c.Fetched, c.Dropped}
}
