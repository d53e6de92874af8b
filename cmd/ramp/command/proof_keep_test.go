package command_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"ramp/agents/journal"
	"ramp/bank/audit"
	"ramp/cmd/ramp/command"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// What a bank shows in place of a proof is held against it, and not kept.
func TestNothingIsKeptThatDoesNotProveTheReceipt(t *testing.T) {
	now := time.Now().UTC()
	ca, err := identity.NewCA("authority", now, time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bank, other := credential(t, ca, "bank", now), credential(t, ca, "other", now)
	head := func(signer *identity.Credential) []byte {
		der, err := contract.SignHead(signer, contract.Head{
			Version: contract.HeadVersion, Bank: signer.ID, Size: 9, Root: hex.EncodeToString(make([]byte, 32)), Time: now, Previous: hex.EncodeToString(make([]byte, 32)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	document := func(d audit.Document) []byte {
		b, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	forged := head(bank)
	forged[len(forged)-1] ^= 1
	proven := audit.Proven{Number: 4, Record: []byte("{}"), Path: [][]byte{make([]byte, 32)}}
	for name, doc := range map[string][]byte{
		"nothing":             nil,
		"garbage":             []byte("{"),
		"a head alone":        document(audit.Document{Head: head(bank)}),
		"another's head":      document(audit.Document{Head: head(other)}),
		"a forged head":       document(audit.Document{Head: forged}),
		"an entry not in it":  document(audit.Document{Head: head(bank), Entries: []audit.Proven{proven}}),
		"a head that is none": document(audit.Document{Head: []byte("head")}),
	} {
		if unproved, err := command.TakeProof(trust, protocol.Receipt{Bank: bank.ID, Entry: 4, Time: now}, doc); !unproved {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bank that is away or slow takes no proofs from the others, however many receipts
// without a proof are its own, and is not asked at each round.
func TestABankThatIsAwayOrSlowIsNotInTheWayOfOthers(t *testing.T) {
	j, err := journal.Open(filepath.Join(t.TempDir(), "j"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var list []reserve.Papers
	for _, b := range []struct {
		bank protocol.AgentID
		n    int
	}{{"away", 300}, {"slow", 300}, {"well", 300}} {
		for i := range b.n {
			list = append(list, reserve.Papers{Decided: protocol.Receipt{Bank: b.bank, Contract: protocol.ContractID(fmt.Sprint(b.bank, i))}})
		}
	}
	type counts = []map[protocol.AgentID]int
	for name, c := range map[string]struct {
		slow time.Duration
		want counts
	}{
		"one is slow": {20 * time.Second, counts{{"away": 1, "slow": 2, "well": 256}, {"away": 1, "slow": 2, "well": 44}, {"away": 1, "slow": 2}}},
		"none is":     {0, counts{{"away": 1, "slow": 256, "well": 256}, {"slow": 44, "well": 44}, {}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := command.AskForProofs(j, list, 3, func(bank protocol.AgentID) (time.Duration, error) {
				switch bank {
				case "away":
					return time.Second, errors.New("it does not answer")
				case "slow":
					return c.slow, nil
				}
				return 0, nil
			})
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: asked %v, want %v", name, got, c.want)
			}
		})
	}
}

func credential(t *testing.T, ca *identity.CA, name string, now time.Time) *identity.Credential {
	t.Helper()
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := identity.KeyPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(name, key.Public(), now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.Parse(cert, pem)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
