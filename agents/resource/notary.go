package resource

import (
	"time"

	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// notary signs with the resource's key, before anything is saved.
type notary struct{ credential *identity.Credential }

// Countersign signs a verified bundle as one of its sellers.
func (n notary) Countersign(v contract.Verified, now time.Time) (contract.Sale, error) {
	der, err := contract.Countersign(n.credential, v, now)
	if err != nil {
		return contract.Sale{}, err
	}
	sale := contract.Sale{Verified: v, Countersigned: now, DER: der}
	sale.Seller = identity.Peer{ID: n.credential.ID, Chain: n.credential.Chain}
	return sale, nil
}

// Refund signs a note by which a unit's cost is given back.
func (n notary) Refund(r contract.Refund, now time.Time) (contract.VerifiedNote[contract.Refund], error) {
	return signNote(n.credential, r, now)
}

func (n notary) Job(r contract.JobRecord, now time.Time) (contract.VerifiedNote[contract.JobRecord], error) {
	return signNote(n.credential, r, now)
}

func signNote[N contract.Note](c *identity.Credential, note N, now time.Time) (contract.VerifiedNote[N], error) {
	der, err := contract.SignNote(c, note, now)
	if err != nil {
		return contract.VerifiedNote[N]{}, err
	}
	return contract.VerifiedNote[N]{Note: note, Signer: identity.Peer{ID: c.ID, Chain: c.Chain}, DER: der}, nil
}
