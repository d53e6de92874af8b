package bench

import (
	"context"
	"crypto"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramp/agents/join"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

const cryptoSHA256 = crypto.SHA256

// signers is how many accounts of a benchmark have keys.
const signers = 64

type benchKeys struct {
	trust    *identity.Trust
	bank     *identity.Credential
	agents   []*identity.Credential
	accounts []protocol.AgentID // the agents first
	number   atomic.Uint64
}

// wireBundle is a countersigned bundle as it arrives from its seller.
type wireBundle struct {
	bytes  []byte
	seller protocol.AgentID
}

func newBenchKeys(accounts int, now time.Time) (*benchKeys, error) {
	ca, err := identity.NewCA("bench-ca", now, join.CaLifetime, rand.Reader)
	if err != nil {
		return nil, err
	}
	k := &benchKeys{}
	if k.trust, err = identity.NewTrust(ca.CertPEM(), nil); err != nil {
		return nil, err
	}
	if k.bank, err = ca.Credential("bank", now, join.LeafLifetime, rand.Reader); err != nil {
		return nil, err
	}
	for i := range min(signers, accounts) {
		c, err := ca.Credential(fmt.Sprintf("agent%d", i), now, join.LeafLifetime, rand.Reader)
		if err != nil {
			return nil, err
		}
		k.agents = append(k.agents, c)
		k.accounts = append(k.accounts, c.ID)
	}
	for i := len(k.accounts); i < accounts; i++ {
		id, err := benchAccount(i)
		if err != nil {
			return nil, err
		}
		k.accounts = append(k.accounts, id)
	}
	return k, nil
}

// benchFingerprint stands for a key that never signs.
func benchFingerprint(i int) string {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:], uint64(i)+1)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// draft makes the next bundle: units of one core for an hour, from one account to another.
func (k *benchKeys) draft(now time.Time, user, seller protocol.AgentID, units int) protocol.Bundle {
	n := k.number.Add(1)
	var nonce [16]byte
	binary.BigEndian.PutUint64(nonce[:], n)
	start := now.Add(time.Hour).UTC().Truncate(time.Second)
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: fmt.Sprintf("bench-%d", n), User: user, Bank: k.bank.ID,
		Currency: benchCurrency, Mode: protocol.ModeOnReservation, RFQ: strings.Repeat("0", 64),
		Total: protocol.Credits(units) * protocol.Credit, Nonce: hex.EncodeToString(nonce[:]), SettleBy: now.Add(30 * time.Minute).UTC(),
	}
	for i := range units {
		b.Units = append(b.Units, protocol.BundleUnit{
			Unit: i, Seller: seller, Reservation: fmt.Sprintf("r%d-%d", n, i), Price: protocol.Credit, Cost: protocol.Credit,
			Slot: protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 1},
		})
	}
	return b
}

func (k *benchKeys) bundle(now time.Time) message.Settlement {
	n := int(k.number.Load())
	user, seller := k.accounts[n*7919%len(k.accounts)], k.accounts[(n*7919+1)%len(k.accounts)]
	b := k.draft(now, user, seller, 1)
	var digest [32]byte
	copy(digest[:], b.Nonce)
	return message.Settlement{Sale: contract.Sale{
		Verified: contract.Verified{ID: protocol.ContractID(hex.EncodeToString(digest[:])), Bundle: b},
		Seller:   identity.Peer{ID: seller},
	}}
}

// wires prepares n signed copies on all cores, until ctx is done.
func (k *benchKeys) wires(ctx context.Context, n, units int) ([]wireBundle, error) {
	list := make([]wireBundle, n)
	errs := make([]error, runtime.NumCPU())
	var next atomic.Int64
	var wg sync.WaitGroup
	for c := range errs {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[c] == nil && ctx.Err() == nil; i = next.Add(1) - 1 {
				list[i], errs[c] = k.wire(int(i), units)
			}
		})
	}
	wg.Wait()
	return list, errors.Join(append(errs, ctx.Err())...)
}

func (k *benchKeys) wire(i, units int) (wireBundle, error) {
	user, seller := k.agents[i%len(k.agents)], k.agents[(i+1)%len(k.agents)]
	now := time.Now()
	inner, err := contract.Sign(user, k.draft(now, user.ID, seller.ID, units), now)
	if err != nil {
		return wireBundle{}, err
	}
	v, err := contract.OpenBundle(inner, k.trust, now)
	if err != nil {
		return wireBundle{}, err
	}
	der, err := contract.Countersign(seller, v, now)
	if err != nil {
		return wireBundle{}, err
	}
	b, err := codec.Encode(protocol.Message{
		Performative: protocol.Request, Sender: seller.ID, Receivers: []protocol.AgentID{k.bank.ID},
		Protocol: protocol.ProtocolRequest, Conversation: v.Bundle.Conversation, ReplyWith: "settle",
		Body: message.Settlement{Sale: contract.Sale{Verified: v, Seller: identity.Peer{ID: seller.ID}, DER: der}},
	})
	return wireBundle{b, seller.ID}, err
}
