package user

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// maxKept bounds the contracts that sellers can be given again; beyond, the one
// that ends first is given to nobody.
const maxKept = 1 << 12

// keptContract is a settled contract that its sellers may still need, as it was
// signed.
type keptContract struct {
	id     protocol.ContractID
	der    []byte
	signed time.Time // as of then its certificates are valid
	ends   time.Time // of its last slot; of one that is paid after the fact, when nobody can report it any more
}

// neededUntil is when a contract with slots that end so is needed by nobody.
func neededUntil(mode protocol.Mode, ends time.Time) time.Time {
	if mode == "" || mode == protocol.ModeOnReservation {
		return ends
	}
	return ends.Add(protocol.ReportWithin)
}

// keep remembers a settled contract, for a seller that has lost it.
func (r *Role) keep(now time.Time, k keptContract) {
	if !k.ends.After(now) {
		return
	}
	r.kept.forgetOver(now)
	r.kept.forget(k.id)
	r.kept.add(k)
	if r.kept.len() > maxKept {
		r.kept.forgetFirst(1)
	}
}

// keptContracts are in order of end, and each is found by its ID.
type keptContracts struct {
	list []keptContract
	ends map[protocol.ContractID]time.Time
}

func newKeptContracts() keptContracts {
	return keptContracts{ends: map[protocol.ContractID]time.Time{}}
}

func (k *keptContracts) len() int { return len(k.list) }

// from is the place of the first contract that does not end before t.
func (k *keptContracts) from(t time.Time) int {
	at, _ := slices.BinarySearchFunc(k.list, t, func(x keptContract, t time.Time) int { return x.ends.Compare(t) })
	return at
}

// find is the place of a contract; -1 if it is not there.
func (k *keptContracts) find(id protocol.ContractID) int {
	ends, ok := k.ends[id]
	if !ok {
		return -1
	}
	at := k.from(ends)
	for k.list[at].id != id { // it is one of those that end then
		at++
	}
	return at
}

func (k *keptContracts) add(x keptContract) {
	k.list = slices.Insert(k.list, k.from(x.ends), x)
	k.ends[x.id] = x.ends
}

func (k *keptContracts) forget(id protocol.ContractID) {
	if at := k.find(id); at >= 0 {
		k.list = slices.Delete(k.list, at, at+1)
		delete(k.ends, id)
	}
}

func (k *keptContracts) forgetOver(now time.Time) { k.forgetFirst(k.from(now.Add(1))) }

func (k *keptContracts) forgetFirst(n int) {
	for _, x := range k.list[:n] {
		delete(k.ends, x.id)
	}
	k.list = slices.Delete(k.list, 0, n)
}

// keepSettled remembers the contract of a purchase that was settled just now.
func (r *Role) keepSettled(now time.Time, p *purchase) {
	v := p.coord.Bundle()
	k := keptContract{id: v.ID, der: v.DER, signed: now}
	for _, u := range v.Bundle.Units {
		k.ends = later(k.ends, neededUntil(v.Bundle.Mode, u.Slot.End))
	}
	r.keep(now, k)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// noteEnds notes a settled purchase whose contract may be needed.
func noteEnds(ends map[string]keptContract, now time.Time, p message.Purchase) {
	k := keptContract{id: p.Contract}
	for _, u := range p.Units {
		k.ends = later(k.ends, neededUntil(p.Mode, u.End))
	}
	if k.ends.After(now) {
		ends[p.ID] = k
	}
}

// restoreKept remembers the contracts of the journal that may be needed; ends has them
// by purchase.
func (r *Role) restoreKept(now time.Time, t protocol.Tables, ends map[string]keptContract) error {
	if len(ends) == 0 {
		return nil
	}
	return t.Each(reserve.TableBundles, func(key string, value []byte) error {
		k, ok := ends[key]
		if !ok {
			return nil
		}
		s, err := reserve.ReadSaved(value)
		if err != nil {
			return err
		}
		k.der, k.signed = slices.Clone(s.Bundle), s.SignedAt
		r.keep(now, k)
		return nil
	})
}

// bundleCopy gives a seller a contract that names it.
func (r *Role) bundleCopy(m protocol.Message, q message.BundleQuery) protocol.Output {
	i := r.kept.find(q.Contract)
	if i < 0 {
		return r.notKept(m)
	}
	k := r.kept.list[i]
	v, err := contract.OpenBundle(k.der, r.cfg.Trust, k.signed)
	if err != nil || !slices.Contains(v.Sellers(), m.Sender) {
		return r.notKept(m)
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.ID(), protocol.Inform, message.BundleCopy{Bundle: v})}}
}

// notKept says the same of a contract that is not there and of another seller's.
func (r *Role) notKept(m protocol.Message) protocol.Output {
	return protocol.Output{Send: []protocol.Message{
		m.Reply(r.ID(), protocol.Refuse, message.Refused(protocol.CodeUnknown, "no contract with this seller that is not over"))}}
}
