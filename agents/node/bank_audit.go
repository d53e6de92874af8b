package node

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/ledgerdb"
	"ramp/protocol/identity"
)

// SignActs signs the operator's acts with the bank's key: SHA-256, and ECDSA or
// RSA PKCS#1 v1.5. The same octets give the same signature.
func SignActs(cred *identity.Credential) func(octets []byte) []byte {
	return func(octets []byte) []byte {
		sum := sha256.Sum256(octets)
		signature, err := cred.Signer().Sign(nil, sum[:], crypto.SHA256)
		if err != nil {
			panic(fmt.Sprintf("the bank's key does not sign: %s", err)) // it signed when it was read
		}
		return signature
	}
}

// errNotOwn is the fault of an act that somebody else signed, or nobody.
var (
	errNotOwn   = errors.New("the signature is not the bank's")
	errUnsigned = errors.New("it has no signature, though earlier ones have")
)

// verifyActs verifies acts in order of entry, with the bank's own key: an agent
// ID stands for one key. Ledgers from before acts were signed begin without.
func verifyActs(cred *identity.Credential) func(octets, signature []byte) error {
	signed := false
	return func(octets, signature []byte) error {
		if len(signature) == 0 && !signed {
			return nil
		}
		if len(signature) == 0 {
			return errUnsigned
		}
		signed = true
		sum := sha256.Sum256(octets)
		if !verifies(cred.Signer().Public(), sum[:], signature) {
			return errNotOwn
		}
		return nil
	}
}

// signatureRate is how fast signatures are verified. One goroutine verifies them, so
// that the rate is that of a core.
type signatureRate struct {
	n    int
	took time.Duration
}

func (r *signatureRate) timed(verify func(octets, signature []byte) error) func(octets, signature []byte) error {
	return func(octets, signature []byte) error {
		began := time.Now()
		err := verify(octets, signature)
		if len(signature) > 0 {
			r.n++
			r.took += time.Since(began)
		}
		return err
	}
}

// perCore is the rate in a second; zero: nothing was verified.
func (r *signatureRate) perCore() float64 {
	if r.n == 0 || r.took <= 0 {
		return 0
	}
	return math.Round(float64(r.n) / r.took.Seconds())
}

func verifies(key crypto.PublicKey, sum, signature []byte) bool {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, sum, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum, signature) == nil
	}
	return false
}

// Audit recomputes everything from the entries in the store, as they are at one
// moment: settlements go on meanwhile.
func (b *Bank) Audit(_ context.Context, q control.AuditCall) (control.AuditReport, error) {
	a, err := AuditLedger(b.db, b.Cred, b.trust, b.Mesh == nil, q.Signatures)
	for _, c := range b.Cfg.Bank.Currencies {
		if a.Sum[c] == "" && err == nil {
			a.Sum[c] = "0"
		}
	}
	return a, err
}

// auditSuspect audits a ledger under which the disk has failed, before anything is served from it.
func (n *Node) auditSuspect(db *ledgerdb.DB) error {
	if !db.Suspect() {
		return nil
	}
	n.Log.Warn("the disk failed under the ledger when it was last open; auditing it", "ledger", db.Path())
	a, err := AuditLedger(db, n.Cred, n.trust, true, true)
	switch {
	case err != nil:
		return exit.Fail(exit.Failed, "", "audit of ledger %s: %w", db.Path(), err)
	case len(a.Bad) > 0:
		return exit.Fail(exit.Failed, "restore a backup: 'ramp bank restore'", "the disk failed under ledger %s, which is damaged: %s", db.Path(), a.Bad[0])
	}
	n.Log.Info("the ledger is sound", "entries", a.Entries)
	return db.Audited()
}

// AuditLedger audits a bank's ledger, with the pages of its file and with the
// signatures of its acts if asked for.
func AuditLedger(db *ledgerdb.DB, cred *identity.Credential, trust *identity.Trust, pages, signatures bool) (control.AuditReport, error) {
	var verify func(octets, signature []byte) error
	var rate signatureRate
	if signatures {
		verify = rate.timed(verifyActs(cred))
	}
	r, log, err := db.AuditAll(pages, openOwnHead(trust), verify)
	a := control.AuditReport{
		Entries: r.Entries, Accounts: r.Accounts, Sum: r.Sum, Bad: append(r.Bad, log.Bad...),
		Signed: r.Signed, Log: log.Size, Root: log.Root, Heads: log.Heads, PerCore: rate.perCore(),
	}
	if a.Bad == nil {
		a.Bad = []string{}
	}
	return a, err
}
