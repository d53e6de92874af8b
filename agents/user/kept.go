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

// keptContract is a settled contract whose slots are not over, as it was signed.
type keptContract struct {
	id     protocol.ContractID
	der    []byte
	signed time.Time // as of then its certificates are valid
	ends   time.Time
}

// keep remembers a settled contract, for a seller that has lost it.
func (r *Role) keep(now time.Time, k keptContract) {
	if !k.ends.After(now) {
		return
	}
	r.kept = slices.DeleteFunc(r.kept, func(x keptContract) bool { return !x.ends.After(now) || x.id == k.id })
	at, _ := slices.BinarySearchFunc(r.kept, k, func(a, b keptContract) int { return a.ends.Compare(b.ends) })
	r.kept = slices.Insert(r.kept, at, k)
	if len(r.kept) > maxKept {
		r.kept = slices.Delete(r.kept, 0, 1)
	}
}

// keepSettled remembers the contract of a purchase that was settled just now.
func (r *Role) keepSettled(now time.Time, p *purchase) {
	v := p.coord.Bundle()
	k := keptContract{id: v.ID, der: v.DER, signed: now}
	for _, u := range v.Bundle.Units {
		k.ends = later(k.ends, u.Slot.End)
	}
	r.keep(now, k)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// noteEnds notes a settled purchase whose last slot is not over.
func noteEnds(ends map[string]keptContract, now time.Time, p message.Purchase) {
	k := keptContract{id: p.Contract}
	for _, u := range p.Units {
		k.ends = later(k.ends, u.End)
	}
	if k.ends.After(now) {
		ends[p.ID] = k
	}
}

// restoreKept remembers the contracts of the journal whose slots are not over;
// ends has them by purchase.
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
	i := slices.IndexFunc(r.kept, func(k keptContract) bool { return k.id == q.Contract })
	if i < 0 {
		return r.notKept(m)
	}
	v, err := contract.OpenBundle(r.kept[i].der, r.cfg.Trust, r.kept[i].signed)
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
