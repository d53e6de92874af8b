package agent

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/identity"
)

// finding is the result of one check.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // good, warning or bad
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it
}

const stateWarning = "warning"

// diagnosis is the result of all checks of one agent.
type diagnosis struct {
	Dir      string    `json:"dir"`
	Findings []finding `json:"findings"`
}

func NewDoctor() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "doctor", Short: "Diagnose the agents of this machine, and suggest remedies", Args: cobra.NoArgs, GroupID: "start",
		Long: `Check every agent of this machine: its directory, configuration, certificate and revocation
lists, free disk space, its daemon, socket and journal, the addresses it listens on and joins
by, its clock against those of the agents it reaches, a site's batch system, and for a bank
whether it is in recovery or its clock was set back. It changes nothing; with Slurm it makes and
deletes a trial reservation. It checks --dir, else $RAMP_DIR, else the default directories. Each
finding is good, a warning or bad. Ends with 1 if one is bad.`,
		Example: "  ramp doctor\n  ramp doctor --dir site",
		RunE: func(c *cobra.Command, _ []string) error {
			dirs, err := agentDirs(dir)
			if err != nil {
				return err
			}
			list := make([]diagnosis, 0, len(dirs))
			for _, d := range dirs {
				list = append(list, examine(c.Context(), d))
			}
			return printDiagnoses(c, list)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "`DIR` of an agent (default: $RAMP_DIR, or all in their default places)")
	return c
}

// printDiagnoses prints the results, and ends with 1 if one is bad.
func printDiagnoses(c *cobra.Command, list []diagnosis) error {
	bad := false
	for _, d := range list {
		for _, f := range d.Findings {
			bad = bad || f.State == healthBad
		}
	}
	err := cli.Show(c, list, func(w io.Writer) {
		for _, d := range list {
			fmt.Fprintln(w, d.Dir)
			cli.Table(w, d.rows()...)
		}
	})
	if err == nil && bad {
		return exit.Silent(exit.Failed)
	}
	return err
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

// examination collects the findings about one agent.
type examination struct {
	dir    string
	cfg    *config.Config
	cred   *identity.Credential
	daemon *control.Client // nil: it does not run
	found  []finding
}

func (p *examination) good(check, format string, args ...any) {
	p.found = append(p.found, finding{Check: check, State: healthGood, Found: fmt.Sprintf(format, args...)})
}

func (p *examination) warn(check, do, format string, args ...any) {
	p.found = append(p.found, finding{Check: check, State: stateWarning, Found: fmt.Sprintf(format, args...), Do: do})
}

func (p *examination) bad(check, do, format string, args ...any) {
	p.found = append(p.found, finding{Check: check, State: healthBad, Found: fmt.Sprintf(format, args...), Do: do})
}

// fault adds an error with its hint.
func (p *examination) fault(check string, err error) {
	hint := ""
	if e, ok := err.(*exit.Error); ok { //nolint:errorlint // the outermost error has the hint
		hint = e.Hint
	}
	p.bad(check, hint, "%s", err)
}

// examine checks one agent. It skips checks that depend on a failed one.
func examine(ctx context.Context, dir string) diagnosis {
	p := &examination{dir: dir}
	p.checkDirectory()
	p.checkDisk()
	if p.checkConfiguration() {
		p.checkDaemon()
		p.checkBank(ctx)
		p.checkListen()
		reached := p.checkBootstrap(ctx)
		if p.checkCertificate() {
			p.checkBatch()
			if reached {
				p.checkReach(ctx)
				p.checkClock(ctx)
			}
		}
	}
	return diagnosis{Dir: dir, Findings: p.found}
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
	if left := time.Until(until); left < certificateSoon {
		p.warn("certificate", "renew it with the same key: 'ramp ca request', then 'ramp ca sign'", "%s, until %s (%s)", p.cred.ID, words.Date(until), daysWords(left))
	} else {
		p.good("certificate", "%s, until %s (%s)", p.cred.ID, words.Date(until), daysWords(left))
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
