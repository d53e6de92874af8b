package command

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/invitation"
)

// Files of an agent's directory, beside its configuration.
const (
	agentCert    = "agent.pem"
	agentKey     = "agent.key"
	agentRequest = "agent.csr"
)

// joining makes an agent of a market in a directory, from an invitation. Each step
// looks at what is there already, so that the same command goes on wherever it was
// interrupted, and changes nothing once it is done.
type joining struct {
	file      string // the invitation
	dir, name string
	cert, key string // PEM files that are there already; empty: none
}

// joinAnswer is what came of it, in JSON.
type joinAnswer struct {
	Agent    protocol.AgentID `json:"agent,omitempty"`
	Dir      string           `json:"dir"`
	State    string           `json:"state"` // joined, or request: the authority must certify it first
	Market   string           `json:"market,omitempty"`
	Request  string           `json:"request,omitempty"` // file, in state request
	Credit   protocol.Credits `json:"credit,omitempty"`
	Currency string           `json:"currency,omitempty"`
	Again    bool             `json:"again,omitempty"` // it had joined before
}

const (
	stateJoined  = "joined"
	stateRequest = "request"
)

func (j *joining) register(c *cobra.Command) {
	c.Flags().StringVar(&j.file, "join", "", "invitation to a market (a file; '-': standard input)")
	c.Flags().StringVar(&j.name, "name", "", "the agent's name in the market (default: the user's, or the machine's)")
	c.Flags().StringVar(&j.cert, "cert", "", "certificate (PEM) that is there already; needs --key")
	c.Flags().StringVar(&j.key, "key", "", "its private key (PEM)")
}

// readInvitation reads an invitation from a file.
func readInvitation(c *cobra.Command, file string) (invitation.Invitation, error) {
	if file == "" {
		return invitation.Invitation{}, fail(exitUsage, "--join FILE: the file that invites, such as invitation.ramp", "--join is empty")
	}
	b, err := readInput(c, file, invitation.MaxSize)
	if err != nil {
		return invitation.Invitation{}, err
	}
	v, err := invitation.Parse(b)
	if errors.Is(err, invitation.ErrNewer) {
		return v, fail(exitUsage, "get the newer version of this program", "%s: %w", file, err)
	}
	if err != nil {
		return v, fail(exitUsage, "ask the bank or site for its file again, and do not edit it", "%s: %w", file, err)
	}
	return v, nil
}

// run makes credential and trust anchors; the configuration is the caller's to
// write, last of all. A nil key means that an authority must certify the request
// first.
func (j *joining) run(c *cobra.Command, v invitation.Invitation) (joinAnswer, error) {
	a := joinAnswer{Dir: j.dir, Market: v.Market, State: stateJoined}
	if (j.cert == "") != (j.key == "") {
		return a, fail(exitUsage, "", "--cert and --key go together")
	}
	if _, err := protocol.NewAgentID(j.name, strings.Repeat("a", protocol.FingerprintLen)); err != nil {
		return a, fail(exitUsage, "", "--name: %w", err)
	}
	if j.cert != "" { // before anything is made of it
		if _, err := vouchedFor(&config{dir: ".", Certificate: j.cert, Key: j.key}, v); err != nil {
			return a, err
		}
	}
	if err := makeDir(j.dir); err != nil {
		return a, err
	}
	if err := j.sameMarket(v); err != nil {
		return a, err
	}
	key, err := j.ownKey()
	if err != nil {
		return a, err
	}
	anchors := filepath.Join(j.dir, caCert)
	there := isThere(anchors)
	if err := putFile(anchors, v.Anchors, 0o644); err != nil {
		return a, err
	}
	a, err = j.certify(c.Context(), v, key, a)
	if errors.Is(err, mesh.ErrNotVouched) && !there {
		_ = os.Remove(anchors) // of the wrong market: the right invitation brings others
	}
	return a, err
}

// makeDir makes the directory of an agent, readable by its owner only.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(exitUsage, "choose another directory", "%w", err)
	}
	return nil
}

// sameMarket refuses a directory that is of another market.
func (j *joining) sameMarket(v invitation.Invitation) error {
	there, err := os.ReadFile(filepath.Join(j.dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	if !bytes.Equal(bytes.TrimSpace(there), bytes.TrimSpace(v.Anchors)) {
		return fail(exitUsage, "choose another directory with --dir", "%s is of another market already: its %s is not the invitation's", j.dir, caCert)
	}
	return nil
}

// ownKey is the agent's private key: the given one, the one that is there, or a
// new one.
func (j *joining) ownKey() (crypto.Signer, error) {
	path := filepath.Join(j.dir, agentKey)
	if j.key != "" {
		b, err := os.ReadFile(j.key)
		if err != nil {
			return nil, fail(exitUsage, "", "--key: %w", err)
		}
		if err := putFile(path, b, 0o600); err != nil {
			return nil, err
		}
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKeyAt(path)
	}
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	key, err := identity.ParseKey(b)
	if err != nil {
		return nil, fail(exitUsage, "", "%s: %w", path, err)
	}
	return key, nil
}

// newKeyAt makes a key and saves it.
func newKeyAt(path string) (crypto.Signer, error) {
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	b, err := identity.KeyPEM(key)
	if err != nil {
		return nil, err
	}
	return key, putFile(path, b, 0o600)
}

// certify sees to the certificate.
func (j *joining) certify(ctx context.Context, v invitation.Invitation, key crypto.Signer, a joinAnswer) (joinAnswer, error) {
	path := filepath.Join(j.dir, agentCert)
	if j.cert != "" {
		b, err := os.ReadFile(j.cert)
		if err != nil {
			return a, fail(exitUsage, "", "--cert: %w", err)
		}
		if err := putFile(path, b, 0o644); err != nil {
			return a, err
		}
	}
	if isThere(path) {
		return j.certified(v, a)
	}
	if v.Enrol == nil {
		return j.leaveRequest(key, a)
	}
	got, err := j.enrol(ctx, v, key)
	if err != nil {
		return a, err
	}
	if err := putFile(path, []byte(got.Certificate), 0o644); err != nil {
		return a, err
	}
	_ = os.Remove(filepath.Join(j.dir, agentRequest)) // of a try without a token; it may not be there
	a.Credit, a.Currency, a.Again = got.Credit, got.Currency, got.Again
	return j.certified(v, a)
}

// certified checks the credential as the market will.
func (j *joining) certified(v invitation.Invitation, a joinAnswer) (joinAnswer, error) {
	cfg := config{dir: j.dir}
	cfg.defaults()
	cred, err := vouchedFor(&cfg, v)
	if err != nil {
		return a, err
	}
	a.Agent = cred.ID
	return a, nil
}

// vouchedFor is a configuration's credential, if a market's anchors vouch for it.
func vouchedFor(cfg *config, v invitation.Invitation) (*identity.Credential, error) {
	cred, err := cfg.credential()
	if err != nil {
		return nil, err
	}
	trust, err := identity.NewTrust(v.Anchors, nil)
	if err != nil {
		return nil, err
	}
	if _, err := trust.Verify(cred.ChainDER(), time.Now()); err != nil {
		return nil, certificateFault(cfg.path(cfg.Certificate), err)
	}
	return cred, nil
}

// certificateFault says what is wrong with an agent's own certificate, and what
// to do.
func certificateFault(path string, err error) error {
	hint := "the agent needs a certificate that the market's trust anchors vouch for"
	switch {
	case errors.Is(err, identity.ErrExpired):
		hint = "have it renewed over the same key: 'ramp ca request' and 'ramp ca sign'; or is the clock wrong? ('ramp doctor')"
	case errors.Is(err, identity.ErrNotYetValid):
		hint = "is this machine's clock wrong? It says " + secondTime(time.Now()) + " UTC"
	case errors.Is(err, identity.ErrRevoked):
		hint = "ask the authority why, and for a certificate over a new key: 'ramp ca request' in another directory"
	}
	return fail(exitUsage, hint, "certificate %s: %w", path, err)
}

// leaveRequest writes a request that an authority may sign.
func (j *joining) leaveRequest(key crypto.Signer, a joinAnswer) (joinAnswer, error) {
	csr, err := identity.Request(key, j.name)
	if err != nil {
		return a, fail(exitUsage, "", "--name %q: %w", j.name, err)
	}
	a.State, a.Request = stateRequest, filepath.Join(j.dir, agentRequest)
	return a, replaceFile(a.Request, csr, 0o644)
}

// enrol asks the bank of the invitation for a certificate and an account.
func (j *joining) enrol(ctx context.Context, v invitation.Invitation, key crypto.Signer) (invitation.Answer, error) {
	csr, err := identity.Request(key, j.name)
	if err != nil {
		return invitation.Answer{}, fail(exitUsage, "", "--name %q: %w", j.name, err)
	}
	trust, err := identity.NewTrust(v.Anchors, nil)
	if err != nil {
		return invitation.Answer{}, err
	}
	request := invitation.Request{Token: v.Enrol.Token, CSR: string(csr)}
	b, err := mesh.Apply(ctx, mesh.Application{Key: key, Trust: trust, To: v.Enrol.Bank, At: v.Bootstrap, Request: request.Encode()})
	if err != nil {
		return invitation.Answer{}, j.notReached(v, err)
	}
	got, err := invitation.ParseAnswer(b)
	if err != nil {
		return got, err
	}
	if got.Refused != "" {
		return got, refusedToJoin(got)
	}
	return got, checkOwn([]byte(got.Certificate), key)
}

func (j *joining) notReached(v invitation.Invitation, err error) error {
	switch {
	case errors.Is(err, mesh.ErrNotThere):
		hint := "is " + v.Enrol.Bank.Name() + " running, and can this machine reach it? The same command goes on from here"
		if v.Enrol.Expires.Before(time.Now()) {
			hint = "the invitation was good until " + v.Enrol.Expires.Format(time.RFC3339) + ": ask whoever sent it for a new one"
		}
		return fail(exitUnreachable, hint, "%w: %s", mesh.ErrNotThere, strings.Join(v.Bootstrap, ", "))
	case errors.Is(err, mesh.ErrNotThisBank):
		return fail(exitUnreachable, "ask whoever sent the invitation for a new one", "%w: %s", mesh.ErrNotThisBank, v.Enrol.Bank)
	case errors.Is(err, identity.ErrNotYetValid), errors.Is(err, identity.ErrExpired):
		return fail(exitUsage, "is this machine's clock wrong? It says "+secondTime(time.Now())+" UTC", "%w", err)
	case errors.Is(err, mesh.ErrNotVouched):
		return fail(exitUsage, "the invitation is to another market, or was changed: ask whoever sent it for a new one", "%w", err)
	}
	return fail(exitUnreachable, "the same command tries again", "ask %s: %w", v.Enrol.Bank.Name(), err)
}

// refusedToJoin says why the bank lets nobody in, and what to do.
func refusedToJoin(a invitation.Answer) error {
	hint := "ask whoever sent the invitation for a new one"
	switch a.Refused {
	case protocol.CodeMismatch:
		hint = "choose another name with --name, or another key with another --dir"
	case protocol.CodeUnavailable:
		hint = "the same command tries again"
	case protocol.CodeMalformed:
		hint = "--name takes 1..63 letters, digits, '.', '_' or '-', beginning with a letter"
	}
	return fail(exitRefused, hint, "the bank refuses (%s): %s", a.Refused, a.Note)
}

// checkOwn reports whether a certificate is for a key.
func checkOwn(certPEM []byte, key crypto.Signer) error {
	cert, err := parseCertificate(certPEM)
	if err != nil {
		return err
	}
	own, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil || !bytes.Equal(own, cert.RawSubjectPublicKeyInfo) {
		return fail(exitFailed, "", "the bank has certified another key than this agent's")
	}
	return nil
}

// putFile writes a file whole, durably, and never over another one: the same
// contents may be there already.
func putFile(path string, b []byte, mode os.FileMode) error {
	there, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(there, b):
		return nil
	case err == nil:
		return fail(exitUsage, "choose another directory with --dir, or move the file away", "%s is there already, and another", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fail(exitUsage, "", "%w", err)
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fail(exitUsage, "choose another directory with --dir", "%w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fail(exitFailed, "", "%w", err)
	}
	return nil
}

// agentName is a name in the market for a person or a machine.
func agentName(said, otherwise, last string) string {
	if said != "" {
		return said
	}
	keep := func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}
	name := strings.TrimLeft(strings.Map(keep, otherwise), "0123456789._-")
	if name == "" {
		return last
	}
	return name[:min(len(name), 63)]
}

// words tell a person what came of joining; next is what to do then.
func (a joinAnswer) words(next string) string {
	if a.State == stateRequest {
		return fmt.Sprintf("wrote %s: the invitation has no token, so an authority must certify it\n  the authority: ramp ca sign %s --out agent.pem\n  then put agent.pem into %s, and give the same command again",
			a.Request, filepath.Base(a.Request), a.Dir)
	}
	market, money := "", ""
	if a.Market != "" {
		market = " " + a.Market
	}
	if a.Credit > 0 {
		money = fmt.Sprintf(", with %s %s to start with", a.Credit, a.Currency)
	}
	return fmt.Sprintf("joined%s as %s%s; all that is its own is in %s\n  next: %s", market, a.Agent, money, a.Dir, next)
}
