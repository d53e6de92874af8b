package command

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/mesh"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/invitation"
)

// enrolConfig lets a bank certify newcomers that show the token of an invitation.
// Without it the bank certifies nobody.
type enrolConfig struct {
	Authority string `yaml:"authority"`          // directory of ca.pem and ca.key
	Lifetime  span   `yaml:"lifetime,omitempty"` // of the certificates
}

// enroller certifies newcomers for a bank.
type enroller struct {
	bank     *bankNode
	ca       *identity.CA
	lifetime time.Duration
}

// enroller reads the bank's authority; nil: it has none. Whoever it certifies must
// be trusted by the bank's own trust anchors.
func (b *bankNode) enroller() (*enroller, error) {
	cfg := b.cfg.Bank.Enrol
	if cfg == nil {
		return nil, nil
	}
	ca, err := readCA(b.cfg.path(cfg.Authority))
	if err != nil {
		return nil, fmt.Errorf("bank.enrol.authority: %w", err)
	}
	e := &enroller{b, ca, time.Duration(cfg.Lifetime)}
	if e.lifetime == 0 {
		e.lifetime = leafLifetime
	}
	probe, err := ca.Issue("probe", b.cred.Signer().Public(), time.Now(), e.lifetime)
	if err == nil {
		err = b.vouchesFor(probe)
	}
	if err != nil {
		return nil, fail(exitUsage, "its ca.pem, or the one above it, must be in "+b.cfg.path(b.cfg.Trust), "bank.enrol.authority %s: %w", cfg.Authority, err)
	}
	return e, nil
}

// vouchesFor reports whether a certificate leads to the bank's trust anchors.
func (b *bankNode) vouchesFor(certPEM []byte) error {
	var chain [][]byte
	for block, rest := pem.Decode(certPEM); block != nil; block, rest = pem.Decode(rest) {
		chain = append(chain, block.Bytes)
	}
	_, err := b.trust.Verify(chain, time.Now())
	return err
}

// serve lets the mesh take applicants; nil: it takes none.
func (e *enroller) serve(c *mesh.Config) {
	if e != nil {
		c.Enrol = e.admit
	}
}

// admit is mesh.Enrol: it answers one applicant.
func (e *enroller) admit(ctx context.Context, a mesh.Applicant) (answer []byte, wrong bool) {
	if a.Request == nil {
		return invitation.Answer{Refused: protocol.CodeLimit, Note: "too many ask at once: try again in a minute"}.Encode(), false
	}
	got, err := e.answer(ctx, a)
	if err == nil {
		e.bank.log.Info("let in by an invitation", "agent", got.Agent, "again", got.Again, "credit", got.Credit)
		return got.Encode(), false
	}
	e.bank.log.Warn("did not let somebody in", "why", err)
	return refusedAnswer(err).Encode(), isWrong(err)
}

// refusedAnswer tells a refusal, and of other errors no more than that there was one.
func refusedAnswer(err error) invitation.Answer {
	var r *ledger.Refusal
	if errors.As(err, &r) {
		return invitation.Answer{Refused: r.Code, Note: r.Note}
	}
	return invitation.Answer{Refused: protocol.CodeUnavailable, Note: "the bank cannot let anybody in just now"}
}

// isWrong reports whether no honest newcomer asks like this.
func isWrong(err error) bool {
	var r *ledger.Refusal
	return errors.As(err, &r) && (r.Code == protocol.CodeUnknown || r.Code == protocol.CodeMalformed || r.Code == protocol.CodeSignature)
}

// answer lets an applicant in. The certificate follows from what the ledger keeps
// of it, so that it is the same however often it is asked for.
func (e *enroller) answer(ctx context.Context, a mesh.Applicant) (invitation.Answer, error) {
	q, err := invitation.ParseRequest(a.Request)
	if err != nil {
		return invitation.Answer{}, &ledger.Refusal{Code: protocol.CodeMalformed, Note: err.Error()}
	}
	name, id, err := applicantOf(q.CSR, a.Key)
	if err != nil {
		return invitation.Answer{}, err
	}
	in, terms, err := e.bank.enrol(ctx, q.Token.Hash(), id, name)
	if err != nil {
		return invitation.Answer{}, err
	}
	cert, err := e.ca.SignRequest([]byte(q.CSR), in.At, e.lifetime)
	if err == nil {
		err = e.bank.vouchesFor(cert)
	}
	if err != nil {
		return invitation.Answer{}, err
	}
	return invitation.Answer{Agent: id, Certificate: string(cert), Credit: terms.Credit, Currency: terms.Currency, Again: in.Again}, nil
}

// applicantOf reads who a request is from: its key must be that of the channel, so
// that nobody gets a certificate by another's request.
func applicantOf(csrPEM string, key []byte) (name string, id protocol.AgentID, err error) {
	block, _ := pem.Decode([]byte(csrPEM))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return "", "", &ledger.Refusal{Code: protocol.CodeMalformed, Note: "no PKCS#10 request in PEM"}
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", "", &ledger.Refusal{Code: protocol.CodeMalformed, Note: "PKCS#10 request: " + err.Error()}
	}
	if !bytes.Equal(csr.RawSubjectPublicKeyInfo, key) {
		return "", "", &ledger.Refusal{Code: protocol.CodeSignature, Note: "the request is of another key than that of the connection"}
	}
	if err := identity.CheckRequest(csr); err != nil {
		return "", "", &ledger.Refusal{Code: protocol.CodeSignature, Note: err.Error()}
	}
	name = csr.Subject.CommonName
	id, err = protocol.NewAgentID(name, identity.Fingerprint(csr.RawSubjectPublicKeyInfo))
	if err != nil {
		return "", "", &ledger.Refusal{Code: protocol.CodeMalformed, Note: err.Error()}
	}
	return name, id, nil
}

// enrol lets an agent in, durably, and says on which terms.
func (b *bankNode) enrol(ctx context.Context, token ledger.TokenHash, id protocol.AgentID, name string) (ledger.Enrolment, ledger.Invitation, error) {
	var in ledger.Enrolment
	var terms ledger.Invitation
	var refused error
	err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		var out protocol.Output
		role := r.(*bank.Role)
		in, out, refused = role.Enrol(now, token, id, name)
		for _, v := range role.Ledger().Invitations() {
			if v.Token == token {
				terms = v
			}
		}
		return out
	})
	if terms.Credit == 0 {
		terms.Currency = ""
	}
	return in, terms, errors.Join(refused, err)
}
