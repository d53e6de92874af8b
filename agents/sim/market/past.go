package market

import (
	"fmt"
	"time"

	"ramp/agents/sim"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// past is a bank's local correspondent History: it reads what is durable. Of the
// past it is only asked here what sellers have sold; outcomes stay in memory.
type past struct{ host **sim.Host }

// Receive answers a little later.
func (p past) Receive(_ time.Time, m protocol.Message) []sim.Later {
	q, ok := m.Body.(message.SoldLookup)
	if !ok {
		return nil
	}
	list, err := ledger.SoldIn((*p.host).Disk(), q.Seller, q.Query.Ends)
	if err != nil {
		panic(fmt.Sprintf("market: the bank's past: %v", err))
	}
	return []sim.Later{{After: time.Millisecond, Message: m.Reply(protocol.LocalHistory, protocol.Inform, page(list, q.Query.After))}}
}

// pageSize is small, so that pages follow each other.
const pageSize = 3

// page is what follows a contract.
func page(list []protocol.Sold, after protocol.ContractID) message.SoldList {
	for i, s := range list {
		if s.Contract == after {
			list = list[i+1:]
			break
		}
	}
	n := min(pageSize, len(list))
	return message.SoldList{Sold: list[:n], More: n < len(list), Complete: true}
}

// Advance has nothing to do by itself.
func (past) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }
