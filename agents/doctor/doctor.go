// Package doctor examines an agent's directory and its daemon, and suggests remedies.
package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/protocol/identity"
)

// States of a check.
const (
	Good    = "good"
	Warning = "warning"
	Bad     = "bad"
)

// CertificateSoon is how long before its end a certificate causes a warning.
const CertificateSoon = 30 * 24 * time.Hour

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State string `json:"state"` // good, warning or bad
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// Diagnosis is the result of all checks of one agent.
type Diagnosis struct {
	Dir      string    `json:"dir"`
	Findings []Finding `json:"findings"`
}

// examination collects the findings about one agent.
type examination struct {
	dir    string
	cfg    *config.Config
	cred   *identity.Credential
	daemon *control.Client // nil: it does not run
	found  []Finding
}

func (p *examination) good(check, format string, args ...any) {
	p.found = append(p.found, Finding{Check: check, State: Good, Found: fmt.Sprintf(format, args...)})
}

func (p *examination) warn(check, do, format string, args ...any) {
	p.found = append(p.found, Finding{Check: check, State: Warning, Found: fmt.Sprintf(format, args...), Do: do})
}

func (p *examination) bad(check, do, format string, args ...any) {
	p.found = append(p.found, Finding{Check: check, State: Bad, Found: fmt.Sprintf(format, args...), Do: do})
}

func (p *examination) fault(check string, err error) {
	hint := ""
	if e, ok := err.(*exit.Error); ok { //nolint:errorlint // the outermost error has the hint
		hint = e.Hint
	}
	p.bad(check, hint, "%s", err)
}

// Examine checks one agent. It skips checks that depend on a failed one.
func Examine(ctx context.Context, dir string) Diagnosis {
	p := &examination{dir: dir}
	p.checkDirectory()
	p.checkDisk()
	if p.checkConfiguration() {
		p.checkDaemon()
		p.checkBank(ctx)
		p.checkAccount(ctx)
		p.checkListen()
		reached := p.checkBootstrap(ctx)
		if p.checkCertificate() {
			p.checkBatch()
			p.checkFederation(ctx)
			if reached {
				p.checkReach(ctx)
				p.checkClock(ctx)
			}
		}
	}
	return Diagnosis{Dir: dir, Findings: p.found}
}

// checkConfiguration reads the configuration, and checks it as a daemon would.
func (p *examination) checkConfiguration() bool {
	path := filepath.Join(p.dir, config.Name)
	var err error
	if p.cfg, err = config.Read(path); err == nil {
		err = p.checkValues(path)
	}
	if err != nil {
		p.fault("configuration", err)
		return false
	}
	p.good("configuration", "%s, of a %s agent", path, p.cfg.Kind())
	return true
}

// checkValues checks the values. It skips those of the agent's kind if there is no credential, which
// checkCertificate reports.
func (p *examination) checkValues(path string) error {
	if err := p.cfg.Check(); err != nil {
		return err
	}
	cred, err := p.cfg.Credential()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	trust, err := p.cfg.TrustAnchors()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	return config.CheckKind(p.cfg.Kind(), path, p.cfg, cred, trust)
}

// checkCertificate checks the credential, as the rest of the market would.
func (p *examination) checkCertificate() bool {
	var err error
	if p.cred, err = p.cfg.Credential(); err == nil {
		err = p.cfg.Vouched(p.cred)
	}
	if err != nil {
		p.fault("certificate", err)
		return false
	}
	until := p.cred.Chain[0].NotAfter
	if left := time.Until(until); left < CertificateSoon {
		p.warn("certificate", "renew it with the same key: 'ramp ca request', then 'ramp ca sign'", "%s, until %s (%s)", p.cred.ID, words.Date(until), DaysWords(left))
	} else {
		p.good("certificate", "%s, until %s (%s)", p.cred.ID, words.Date(until), DaysWords(left))
	}
	p.checkLists()
	return true
}

// checkLists warns about revocation lists that are past their next update.
func (p *examination) checkLists() {
	trust, err := p.cfg.TrustAnchors()
	if err != nil {
		p.fault("revocation", err)
		return
	}
	for _, s := range trust.Stale(time.Now()) {
		p.warn("revocation", "get a new revoked.pem from the authority; certificates that it revokes stay revoked", "the list of %s is past its next update", s)
	}
}

// DaysWords are the time that is left, in days.
func DaysWords(d time.Duration) string {
	if d < 0 {
		return "expired"
	}
	return words.Plural(int(d/(24*time.Hour)), "day") + " left"
}

// checkBank checks whether a running bank needs its operator.
func (p *examination) checkBank(ctx context.Context) {
	if p.cfg.Bank == nil || p.daemon == nil {
		return
	}
	if t := TroubleOf(ctx, p.daemon); t.Words != "" {
		p.bad(t.What, t.Help, "%s", t.Words)
	}
}

// checkAccount checks whether a bank has an account of a running user or site.
func (p *examination) checkAccount(ctx context.Context) {
	if p.cfg.Bank != nil || p.daemon == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, control.StatusCallTime)
	defer cancel()
	if list, err := control.Balance.Get(ctx, p.daemon, control.None{}); err == nil && len(list) == 0 {
		p.warn("account", words.NoAccountHelp, words.NoAccount)
	}
}

// TroubleOf asks a bank's daemon what needs its operator.
func TroubleOf(ctx context.Context, daemon *control.Client) node.Trouble {
	ctx, cancel := context.WithTimeout(ctx, control.StatusCallTime)
	defer cancel()
	var v control.PoliciesView
	if control.Policies.Ask(ctx, daemon, struct{}{}, &v) != nil {
		return node.Trouble{}
	}
	return node.TroubleIn(v)
}
