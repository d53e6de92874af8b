// Package join makes an agent's credential: a key that never leaves its directory, and a
// certificate of the market's authority, requested with an invitation or issued here.
package join

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/invitation"
)

// Files of an agent's directory, beside its configuration.
const (
	CertificateFile = "agent.pem"
	AgentKeyFile    = "agent.key"
	agentRequest    = "agent.csr"
)

// Joining makes an agent of a market in a directory, from an invitation. Each step keeps
// existing files, so repeating the command continues where it was interrupted, and changes
// nothing once it is done.
type Joining struct {
	File      string // the invitation
	Dir, Name string
	Cert, Key string // existing PEM files, or empty
}

// Answer is the result, in JSON.
type Answer struct {
	Agent    protocol.AgentID `json:"agent,omitempty"`
	Dir      string           `json:"dir"`
	State    string           `json:"state"` // joined, or request: the authority must certify it first
	Market   string           `json:"market,omitempty"`
	Request  string           `json:"request,omitempty"` // file, in state request
	Credit   protocol.Credits `json:"credit,omitempty"`
	Currency string           `json:"currency,omitempty"`
	Again    bool             `json:"again,omitempty"` // it had joined earlier
}

const (
	stateJoined  = "joined"
	StateRequest = "request"
)

// ReadInvitation reads an invitation from a file.
func ReadInvitation(ctx context.Context, in io.Reader, file string) (invitation.Invitation, error) {
	if file == "" {
		return invitation.Invitation{}, exit.Fail(exit.Usage, "give the invitation, such as --join invitation.ramp", "--join is empty")
	}
	b, err := words.ReadInput(ctx, in, file, invitation.MaxSize)
	if err != nil {
		return invitation.Invitation{}, err
	}
	v, err := invitation.Parse(b)
	if errors.Is(err, invitation.ErrNewer) {
		return v, exit.Fail(exit.Usage, "get the newer version of this program", "%s: %w", file, err)
	}
	if err != nil {
		return v, exit.Fail(exit.Usage, "ask the bank or site for its file again, and do not edit it", "%s: %w", file, err)
	}
	return v, nil
}

// Run makes the credential and the trust anchors. The caller writes the configuration last.
// A nil key means that an authority must certify the request first.
func (j *Joining) Run(ctx context.Context, v invitation.Invitation) (Answer, error) {
	a := Answer{Dir: j.Dir, Market: v.Market, State: stateJoined}
	if (j.Cert == "") != (j.Key == "") {
		return a, exit.Fail(exit.Usage, "", "--cert and --key go together")
	}
	if _, err := protocol.NewAgentID(j.Name, strings.Repeat("a", protocol.FingerprintLen)); err != nil {
		return a, exit.Fail(exit.Usage, "", "--name: %w", err)
	}
	if j.Cert != "" { // check before making anything of it
		if _, err := vouchedFor(&config.Config{Dir: ".", Certificate: j.Cert, Key: j.Key}, v); err != nil {
			return a, err
		}
	}
	if err := MakeDir(j.Dir); err != nil {
		return a, err
	}
	if err := j.sameMarket(v); err != nil {
		return a, err
	}
	key, err := j.OwnKey()
	if err != nil {
		return a, err
	}
	anchors := filepath.Join(j.Dir, AnchorsFile)
	there := config.IsThere(anchors)
	if err := PutFile(anchors, v.Anchors, 0o644); err != nil {
		return a, err
	}
	a, err = j.certify(ctx, v, key, a)
	if errors.Is(err, mesh.ErrNotVouched) && !there {
		_ = os.Remove(anchors) // of the wrong market: the right invitation has others
	}
	return a, err
}

// MakeDir makes the directory of an agent, readable by its owner only.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exit.Fail(exit.Usage, "choose another directory", "%w", err)
	}
	return nil
}

// sameMarket refuses a directory that belongs to another market.
func (j *Joining) sameMarket(v invitation.Invitation) error {
	there, err := os.ReadFile(filepath.Join(j.Dir, AnchorsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	if !bytes.Equal(bytes.TrimSpace(there), bytes.TrimSpace(v.Anchors)) {
		return exit.Fail(exit.Usage, "choose another directory with --dir", "%s belongs to another market: its %s differs from the invitation's", j.Dir, AnchorsFile)
	}
	return nil
}

// OwnKey returns the agent's private key: the given, the existing or a new one.
func (j *Joining) OwnKey() (crypto.Signer, error) {
	path := filepath.Join(j.Dir, AgentKeyFile)
	if j.Key != "" {
		b, err := os.ReadFile(j.Key)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "", "--key: %w", err)
		}
		if err := PutFile(path, b, 0o600); err != nil {
			return nil, err
		}
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKeyAt(path)
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	key, err := identity.ParseKey(b)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%s: %w", path, err)
	}
	return key, nil
}

func newKeyAt(path string) (crypto.Signer, error) {
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	b, err := identity.KeyPEM(key)
	if err != nil {
		return nil, err
	}
	return key, PutFile(path, b, 0o600)
}

func (j *Joining) certify(ctx context.Context, v invitation.Invitation, key crypto.Signer, a Answer) (Answer, error) {
	path := filepath.Join(j.Dir, CertificateFile)
	if j.Cert != "" {
		b, err := os.ReadFile(j.Cert)
		if err != nil {
			return a, exit.Fail(exit.Usage, "", "--cert: %w", err)
		}
		if err := PutFile(path, b, 0o644); err != nil {
			return a, err
		}
	}
	if config.IsThere(path) {
		return j.certified(v, a)
	}
	if v.Enrol == nil {
		return j.LeaveRequest(key, a)
	}
	got, err := j.enrol(ctx, v, key)
	if err != nil {
		return a, err
	}
	if err := PutFile(path, []byte(got.Certificate), 0o644); err != nil {
		return a, err
	}
	_ = os.Remove(filepath.Join(j.Dir, agentRequest)) // of an attempt without a token; it may not exist
	a.Credit, a.Currency, a.Again = got.Credit, got.Currency, got.Again
	return j.certified(v, a)
}

// certified checks the credential as the market will.
func (j *Joining) certified(v invitation.Invitation, a Answer) (Answer, error) {
	cfg := config.Config{Dir: j.Dir}
	cfg.Defaults()
	cred, err := vouchedFor(&cfg, v)
	if err != nil {
		return a, err
	}
	a.Agent = cred.ID
	return a, nil
}

// vouchedFor returns a configuration's credential if a market's trust anchors vouch for it.
func vouchedFor(cfg *config.Config, v invitation.Invitation) (*identity.Credential, error) {
	cred, err := cfg.Credential()
	if err != nil {
		return nil, err
	}
	trust, err := identity.NewTrust(v.Anchors, nil)
	if err != nil {
		return nil, err
	}
	if _, err := trust.Verify(cred.ChainDER(), time.Now()); err != nil {
		return nil, config.CertificateFault(cfg.Path(cfg.Certificate), err)
	}
	return cred, nil
}

// LeaveRequest writes a request that an authority may sign.
func (j *Joining) LeaveRequest(key crypto.Signer, a Answer) (Answer, error) {
	csr, err := identity.Request(key, j.Name)
	if err != nil {
		return a, exit.Fail(exit.Usage, "", "--name %q: %w", j.Name, err)
	}
	a.State, a.Request = StateRequest, filepath.Join(j.Dir, agentRequest)
	return a, config.ReplaceFile(a.Request, csr, 0o644)
}

// enrol asks the bank of the invitation for a certificate and an account.
func (j *Joining) enrol(ctx context.Context, v invitation.Invitation, key crypto.Signer) (invitation.Answer, error) {
	csr, err := identity.Request(key, j.Name)
	if err != nil {
		return invitation.Answer{}, exit.Fail(exit.Usage, "", "--name %q: %w", j.Name, err)
	}
	trust, err := identity.NewTrust(v.Anchors, nil)
	if err != nil {
		return invitation.Answer{}, err
	}
	request := invitation.Request{Token: v.Enrol.Token, CSR: string(csr)}
	b, err := apply(ctx, v, mesh.Application{Key: key, Trust: trust, To: v.Enrol.Bank, At: v.Bootstrap, Request: request.Encode()})
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

// MarketPatience is how long a newcomer waits for a market that does not answer: the bank may
// have been started just now.
const (
	MarketPatience = 10 * time.Second
	applyAgain     = 100 * time.Millisecond
)

// apply sends the request, again and again while nobody answers and the invitation is good.
func apply(ctx context.Context, v invitation.Invitation, a mesh.Application) ([]byte, error) {
	for until := time.Now().Add(MarketPatience); ; {
		b, err := mesh.Apply(ctx, a)
		if now := time.Now(); !errors.Is(err, mesh.ErrNotThere) || now.After(until) || v.Enrol.Expires.Before(now) {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(applyAgain):
		}
	}
}

func (j *Joining) notReached(v invitation.Invitation, err error) error {
	switch {
	case errors.Is(err, mesh.ErrNotThere):
		hint := "can this machine reach " + v.Enrol.Bank.Name() + "? The same command continues from here"
		if v.Enrol.Expires.Before(time.Now()) {
			hint = "the invitation was good until " + words.Moment(v.Enrol.Expires) + ": ask whoever sent it for a new one"
		}
		return exit.Fail(exit.Unreachable, hint, "%w", err)
	case errors.Is(err, mesh.ErrNotThisBank):
		return exit.Fail(exit.Unreachable, "ask whoever sent the invitation for a new one", "%w: %s", mesh.ErrNotThisBank, v.Enrol.Bank)
	case errors.Is(err, identity.ErrNotYetValid), errors.Is(err, identity.ErrExpired):
		return exit.Fail(exit.Usage, "is this machine's clock wrong? It says "+words.At(time.Now()), "%w", err)
	case errors.Is(err, mesh.ErrNotVouched):
		return exit.Fail(exit.Usage, "the invitation is to another market, or was changed: ask whoever sent it for a new one", "%w", err)
	}
	return exit.Fail(exit.Unreachable, "the same command tries again", "%s could not be asked: %w", v.Enrol.Bank.Name(), err)
}

// refusedToJoin explains why the bank refuses a newcomer.
func refusedToJoin(a invitation.Answer) error {
	hint := "ask whoever sent the invitation for a new one"
	switch a.Refused {
	case protocol.CodeMismatch:
		hint = "choose another name with --name, or another key with another --dir"
	case protocol.CodeUnavailable:
		hint = "the invitation is still good: the same command tries again"
	case protocol.CodeMalformed:
		hint = "--name takes 1..63 letters, digits, '.', '_' or '-', beginning with a letter"
	}
	return exit.Fail(exit.Refused, hint, "the bank refuses (%s): %s", a.Refused, a.Note)
}

func checkOwn(certPEM []byte, key crypto.Signer) error {
	cert, err := ParseCertificate(certPEM)
	if err != nil {
		return err
	}
	own, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil || !bytes.Equal(own, cert.RawSubjectPublicKeyInfo) {
		return exit.Fail(exit.Failed, "", "the bank has certified another key than this agent's")
	}
	return nil
}

// PutFile writes a file durably. It refuses to replace a file with other contents.
func PutFile(path string, b []byte, mode os.FileMode) error {
	there, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(there, b):
		return nil
	case err == nil:
		return exit.Fail(exit.Usage, "choose another directory with --dir, or move the file away", "%s exists already with other contents", path)
	case !errors.Is(err, fs.ErrNotExist):
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	return config.ReplaceFile(path, b, mode)
}

// AgentName is a name in the market for a person or a machine.
func AgentName(said, otherwise, last string) string {
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

// Words describe the result to a person; next is the next step.
func (a Answer) Words(next string) string {
	if a.State == StateRequest {
		return fmt.Sprintf("wrote %s: the invitation has no token, so an authority must certify it\n  the authority: ramp ca sign %s --out agent.pem\n  then put agent.pem into %s, and give the same command again",
			a.Request, filepath.Base(a.Request), a.Dir)
	}
	market, money := "", ""
	if a.Market != "" {
		market = " " + a.Market
	}
	if a.Credit > 0 {
		money = fmt.Sprintf(" with %s %s", a.Credit.Cents(), a.Currency)
	}
	return fmt.Sprintf("Joined%s as %s%s. Files: %s\n  next: %s", market, a.Agent.Name(), money, a.Dir, next)
}
