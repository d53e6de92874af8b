package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/mesh"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/invitation"
)

type enroller struct {
	node     *Node
	ca       *identity.CA
	lifetime time.Duration
}

// newEnroller reads the bank's certificate authority; nil: it has none. The bank's own
// trust anchors must accept the certificates that it issues.
func newEnroller(n *Node) (*enroller, error) {
	cfg := n.Cfg.Bank.Enrol
	if cfg == nil {
		return nil, nil
	}
	ca, err := join.ReadCA(n.Cfg.Path(cfg.Authority))
	if err != nil {
		return nil, fmt.Errorf("bank.enrol.authority: %w", err)
	}
	e := &enroller{n, ca, time.Duration(cfg.Lifetime)}
	e.lifetime = cmp.Or(e.lifetime, join.LeafLifetime)
	probe, err := ca.Issue("probe", n.Cred.Signer().Public(), time.Now(), e.lifetime)
	if err == nil {
		err = e.vouchesFor(probe)
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "its ca.pem, or the one above it, must be in "+n.Cfg.Path(n.Cfg.Trust), "bank.enrol.authority %s: %w", cfg.Authority, err)
	}
	return e, nil
}

// vouchesFor returns an error unless a certificate leads to the bank's trust anchors.
func (e *enroller) vouchesFor(certPEM []byte) error {
	var chain [][]byte
	for block, rest := pem.Decode(certPEM); block != nil; block, rest = pem.Decode(rest) {
		chain = append(chain, block.Bytes)
	}
	_, err := e.node.trust.Verify(chain, time.Now())
	return err
}

// serve lets the mesh take applicants, unless the bank has no authority.
func (e *enroller) serve(c *mesh.Config) {
	if e != nil {
		c.Enrol = e.admit
	}
}

// admit is mesh.Enrol: it answers one applicant.
func (e *enroller) admit(ctx context.Context, a mesh.Applicant) (answer []byte, wrong bool) {
	if a.Request == nil {
		return invitation.Answer{Refused: protocol.CodeUnavailable, Note: "too many requests at once: try again in a minute"}.Encode(), false
	}
	got, err := e.answer(ctx, a)
	if err == nil {
		e.node.Log.Info("admitted a newcomer", "agent", got.Agent, "again", got.Again, "credit", got.Credit)
		return got.Encode(), false
	}
	e.node.Log.Warn("refused a newcomer", "why", err)
	var r *ledger.Refusal // such as no honest newcomer gets
	wrong = errors.As(err, &r) && (r.Code == protocol.CodeUnknown || r.Code == protocol.CodeMalformed || r.Code == protocol.CodeSignature)
	return refusedAnswer(err).Encode(), wrong
}

// refusedAnswer passes a refusal on; about other errors it says only that there was one.
func refusedAnswer(err error) invitation.Answer {
	var r *ledger.Refusal
	if errors.As(err, &r) {
		return invitation.Answer{Refused: r.Code, Note: r.Note}
	}
	return invitation.Answer{Refused: protocol.CodeUnavailable, Note: "the bank cannot let anybody in just now"}
}

// answer admits an applicant. The certificate depends only on the ledger's record of the
// enrolment, so a repeated request gets the same one.
func (e *enroller) answer(ctx context.Context, a mesh.Applicant) (invitation.Answer, error) {
	q, err := invitation.ParseRequest(a.Request)
	if err != nil {
		return invitation.Answer{}, &ledger.Refusal{Code: protocol.CodeMalformed, Note: err.Error()}
	}
	name, id, err := applicantOf(q.CSR, a.Key)
	if err != nil {
		return invitation.Answer{}, err
	}
	in, terms, err := e.enrol(ctx, q.Token.Hash(), id, name)
	if err != nil {
		return invitation.Answer{}, err
	}
	cert, err := e.ca.SignRequest([]byte(q.CSR), in.At, e.lifetime)
	if err == nil {
		err = e.vouchesFor(cert)
	}
	if err != nil {
		return invitation.Answer{}, err
	}
	return invitation.Answer{Agent: id, Certificate: string(cert), Credit: terms.Credit, Currency: terms.Currency, Again: in.Again}, nil
}

// applicantOf reads the name and ID in a request. Its key must be that of the connection,
// so nobody gets a certificate by another's request.
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
		return "", "", &ledger.Refusal{Code: protocol.CodeSignature, Note: "the request has another key than the connection"}
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

// enrol admits an agent, durably, and returns its terms.
func (e *enroller) enrol(ctx context.Context, token ledger.TokenHash, id protocol.AgentID, name string) (ledger.Enrolment, ledger.Invitation, error) {
	var in ledger.Enrolment
	var terms ledger.Invitation
	var refused error
	err := e.node.Runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		var out protocol.Output
		role := r.(*bank.Role)
		in, out, refused = role.Enrol(now, token, id, name)
		for _, v := range role.Ledger().Invitations.All() {
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
