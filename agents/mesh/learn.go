package mesh

import (
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// learn notes where sellers are, as their records say, so that messages find them. The
// agent at such an address must prove again that it is the seller. A record does not replace
// newer addresses that the seller itself has shown.
func (e *endpoint) learn(list []message.Record) {
	for _, r := range list {
		if c := e.contacts.ofAgent(r.Seller); c != nil && c.current().seen.After(r.Issued) {
			continue
		}
		if err := e.enter(r); err != nil {
			e.cfg.Log.Debug("cannot use a seller's record", "seller", r.Seller, "err", err)
		}
	}
}

func (e *endpoint) enter(r message.Record) error {
	chain, err := codec.ChainOf(r.Signed)
	if err != nil {
		return err
	}
	p, err := e.cfg.Trust.Verify(chain, e.cfg.Now())
	if err != nil {
		return err
	}
	id, err := peerOf(p.Chain[0])
	if err != nil {
		return err
	}
	shown := card{chain: chain, addrs: parseClaimed(r.Presence.Addresses)}
	agent, by, err := shown.holder(e.cfg.Trust, id, e.cfg.Now())
	if err == nil {
		_, err = e.contacts.add(agent, by, id, shown, r.Issued)
	}
	return err
}
