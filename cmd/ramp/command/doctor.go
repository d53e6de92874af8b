package command

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol/identity"
)

// finding is what the doctor says of one thing.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // good, warning or bad
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what helps
}

const stateWarning = "warning"

// diagnosis is what the doctor says of one agent.
type diagnosis struct {
	Dir      string    `json:"dir"`
	Findings []finding `json:"findings"`
}

func newDoctor() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the agents of this machine, and say what helps", Args: cobra.NoArgs,
		Long: `Looks at every agent of this machine: its directory, configuration, certificate and
revocation lists, the room on its disk, its daemon, socket and journal, the addresses it
listens on and joins by, and its clock against those of the agents it reaches. It changes
nothing. It looks into --dir, else $RAMP_DIR, else the default directories. It ends with 1
if something is bad; warnings alone end with 0.`,
		RunE: func(c *cobra.Command, _ []string) error {
			dirs, err := agentDirs(dir)
			if err != nil {
				return err
			}
			list := make([]diagnosis, 0, len(dirs))
			for _, d := range dirs {
				list = append(list, examine(c.Context(), d))
			}
			return tellDiagnoses(c, list)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "an agent's directory (default: $RAMP_DIR, or all in their default places)")
	return c
}

// tellDiagnoses prints them, and ends with 1 if something is bad.
func tellDiagnoses(c *cobra.Command, list []diagnosis) error {
	bad := false
	for _, d := range list {
		for _, f := range d.Findings {
			bad = bad || f.State == healthBad
		}
	}
	if wantsJSON(c) {
		if err := printJSON(stdout(c), list); err != nil {
			return err
		}
	} else {
		for _, d := range list {
			fmt.Fprintln(stdout(c), d.Dir)
			table(stdout(c), d.rows()...)
		}
	}
	if bad {
		return silent(exitFailed)
	}
	return nil
}

func (d diagnosis) rows() [][]string {
	var rows [][]string
	for _, f := range d.Findings {
		rows = append(rows, []string{f.Check, f.State, f.Found})
		if f.Do != "" {
			rows = append(rows, []string{"", "", "-> " + f.Do})
		}
	}
	return rows
}

// patient is an agent that is looked at.
type patient struct {
	dir    string
	cfg    *config
	cred   *identity.Credential
	daemon *caller // nil: it does not run
	found  []finding
}

func (p *patient) good(check, format string, args ...any) {
	p.found = append(p.found, finding{Check: check, State: healthGood, Found: fmt.Sprintf(format, args...)})
}

func (p *patient) warn(check, do, format string, args ...any) {
	p.found = append(p.found, finding{Check: check, State: stateWarning, Found: fmt.Sprintf(format, args...), Do: do})
}

func (p *patient) bad(check, do, format string, args ...any) {
	p.found = append(p.found, finding{Check: check, State: healthBad, Found: fmt.Sprintf(format, args...), Do: do})
}

// fault notes an error with its hint.
func (p *patient) fault(check string, err error) {
	hint := ""
	if e, ok := err.(*exitError); ok { //nolint:errorlint // the outermost one has the hint for people
		hint = e.hint
	}
	p.bad(check, hint, "%s", err)
}

// examine looks at one agent. What cannot be looked at for want of something else
// is left out: that was told.
func examine(ctx context.Context, dir string) diagnosis {
	p := &patient{dir: dir}
	p.checkDirectory()
	p.checkDisk()
	if p.checkConfiguration() {
		p.checkDaemon()
		p.checkBank(ctx)
		p.checkListen()
		reached := p.checkBootstrap(ctx)
		if p.checkCertificate() && reached {
			p.checkClock(ctx)
		}
	}
	return diagnosis{Dir: dir, Findings: p.found}
}

// checkConfiguration reads the configuration, and checks it as a daemon would.
func (p *patient) checkConfiguration() bool {
	path := filepath.Join(p.dir, configName)
	var err error
	if p.cfg, err = readConfig(path); err == nil {
		err = p.checkValues(path)
	}
	if err != nil {
		p.fault("configuration", err)
		return false
	}
	p.good("configuration", "%s, of a %s agent", path, p.cfg.kind())
	return true
}

// checkValues holds the values to what is allowed. Those of a section are left alone
// without a credential, of which checkCertificate tells.
func (p *patient) checkValues(path string) error {
	if err := p.cfg.check(); err != nil {
		return err
	}
	cred, err := p.cfg.credential()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	trust, err := p.cfg.trust()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	return checkKind(p.cfg.kind(), path, p.cfg, cred, trust)
}

// checkCertificate looks at the credential, as others of the market would.
func (p *patient) checkCertificate() bool {
	var err error
	if p.cred, err = p.cfg.credential(); err == nil {
		err = p.cfg.vouched(p.cred)
	}
	if err != nil {
		p.fault("certificate", err)
		return false
	}
	until := p.cred.Chain[0].NotAfter
	if left := time.Until(until); left < certificateSoon {
		p.warn("certificate", "have it renewed over the same key: 'ramp ca request', 'ramp ca sign'", "%s, until %s (%s)", p.cred.ID, until.Format(time.DateOnly), daysWords(left))
	} else {
		p.good("certificate", "%s, until %s (%s)", p.cred.ID, until.Format(time.DateOnly), daysWords(left))
	}
	p.checkLists()
	return true
}

// checkLists tells revocation lists that are past their next update.
func (p *patient) checkLists() {
	trust, err := p.cfg.trust()
	if err != nil {
		p.fault("revocation", err)
		return
	}
	for _, s := range trust.Stale(time.Now()) {
		p.warn("revocation", "get a new revoked.pem from the authority; what it revokes stays revoked", "the list of %s is past its next update", s)
	}
}
