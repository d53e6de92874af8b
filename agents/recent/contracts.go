package recent

import (
	"sync"

	"ramp/agents/control"
	"ramp/agents/user"
	"ramp/protocol"
)

// Contracts knows which purchase of a user has which contract. A purchase that is over is
// decoded once, not for every page of a statement. The zero Contracts knows nothing yet.
type Contracts struct {
	mu    sync.Mutex
	known map[string]bool // purchases that are over
	of    map[protocol.ContractID]bought
}

type bought struct{ id, name string }

// Name adds the purchases of a statement's lines, and their names.
func (x *Contracts) Name(t Table, list []control.BankStatement) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.catchUp(t); err != nil {
		return err
	}
	for i := range list {
		b := &list[i]
		b.Purchases, b.Names = map[protocol.ContractID]string{}, map[protocol.ContractID]string{}
		for _, l := range b.Lines {
			p, ok := x.of[l.Contract]
			if ok {
				b.Purchases[l.Contract] = p.id
			}
			if p.name != "" {
				b.Names[l.Contract] = p.name
			}
		}
	}
	return nil
}

// catchUp learns the contracts of purchases that are new or not over, and begins again if
// purchases are gone.
func (x *Contracts) catchUp(t Table) error {
	fresh, gone, err := unknown(t, user.TablePurchases, x.known)
	if err == nil && (gone || x.known == nil) {
		x.known, x.of = map[string]bool{}, map[protocol.ContractID]bought{}
		fresh, _, err = unknown(t, user.TablePurchases, nil)
	}
	for _, key := range fresh {
		if err == nil {
			err = x.learn(t, key)
		}
	}
	return err
}

func (x *Contracts) learn(t Table, key string) error {
	value, err := t.Get(user.TablePurchases, key)
	if err != nil || value == nil { // it was deleted just now
		return err
	}
	row, err := user.ReadRow(value)
	if err != nil {
		return err
	}
	if c := row.Purchase.Contract; c != "" {
		x.of[c] = bought{key, row.RFQ}
	}
	if !row.Live() {
		x.known[key] = true
	}
	return nil
}
