package resource

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/mesh"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

// siteInit is what init needs to make resource agents.
type siteInit struct {
	config.Inspection
	config.SiteTerms
	dir, name, ca string
	force         bool
	joins         siteJoin
}

type madeAgent struct {
	config.Found
	Dir     string           `json:"dir"`
	Config  string           `json:"config"`
	Agent   protocol.AgentID `json:"agent,omitempty"` // empty: it has no certificate yet
	Missing []string         `json:"missing"`         // before it can sell
	Credit  protocol.Credits `json:"credit,omitempty"`
	Again   bool             `json:"again,omitempty"` // it was made before; its configuration stays
}

type madeSite struct {
	Driver  string           `json:"driver"`
	Dir     string           `json:"dir"`
	Agents  []madeAgent      `json:"agents"`
	LeftOut []config.LeftOut `json:"left_out"`
}

func newResourceInit() *cobra.Command {
	var s siteInit
	c := &cobra.Command{
		Use: "init", Short: "Inspect the machine and write a matching configuration", Args: cobra.NoArgs, GroupID: "join",
		Long: `Ask the batch system for its partitions, nodes, cores, memory and features, and whether this
account may reserve (in Slurm by reserving one core 300 days ahead and deleting it at once), and
write a commented config.yaml. If there are several Slurm partitions, each gets an agent of its
own in a directory of its name below --dir; 'ramp resource serve --dir DIR' runs them all. A
partition whose nodes all belong to a larger one is left out, since its cores would be sold
twice. With --join each agent joins the market of the invitation, as in 'ramp user init'; with
--ca it gets a certificate from that authority, which is created if missing. The same command
continues where it was interrupted. Only --force overwrites a configuration; keys are never
overwritten.`,
		Example: "  ramp resource init --join invitation.ramp\n  ramp resource init --driver slurm --ca ca --bank bank@… --currency CPU --dir site",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if s.dir, err = cli.DirOf(c, "resource"); err != nil {
				return err
			}
			if err := s.joins.read(c, &s); err != nil {
				return err
			}
			if s.Programs == "" {
				s.Programs = cli.Answer(c, "May buyers run programs in sold slots? "+config.ProgramsHelp+": ")
			}
			made, err := s.make(time.Now())
			if err != nil {
				return err
			}
			return s.joins.tell(c, made)
		},
	}
	s.flags(c)
	return c
}

func (s *siteInit) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.Driver, "driver", "", "`DRIVER`: slurm, pbs, local, command or swf (default: the batch system whose commands are installed, else local)")
	f.StringArrayVar(&s.Partitions, "partition", nil, "slurm: sell partition `NAME`; repeatable (default: all)")
	f.StringVar(&s.Conf, "conf", "", "slurm, pbs: its configuration `FILE` (default: $SLURM_CONF or $PBS_CONF_FILE, else its own default)")
	f.StringSliceVar(&s.Prefix, "prefix", nil, "slurm, pbs: put these comma-separated `WORDS` before each command: sudo,-n,-u,slurm")
	f.StringVar(&s.Log, "log", "", "swf: workload log `FILE`")
	f.StringVar(&s.Program, "program", "", "command: program `FILE`")
	f.StringVar(&s.Claims, "claims", "", "local: `DIR` in which the agents of this machine record what they sold (default: one shared by all)")
	f.StringSliceVar(&s.Users, "users", nil, "comma-separated `ACCOUNTS` that may run jobs in sold slots (default: this account)")
	f.StringVar(&s.Programs, "programs", "", "`WHICH` programs buyers may run: "+config.ProgramsHelp+" (default: ask on a terminal, else no)")
	f.StringVar(&s.Bank, "bank", "", "agent `ID` of the bank that the agent deals with")
	f.StringVar(&s.Currency, "currency", "CPU", "one of the bank's currencies, `CUR`")
	f.StringVar(&s.Start, "start-price", "2", "open at `C` credits per core-hour")
	f.StringVar(&s.Least, "minimum-price", "1", "never go below `C` credits per core-hour")
	f.StringArrayVar(&s.Listen, "listen", []string{"/ip4/127.0.0.1/tcp/0"}, "listen on `ADDR`; repeatable")
	f.StringArrayVar(&s.Bootstrap, "bootstrap", nil, "`ADDR` of an agent in the market; repeatable")
	f.StringVar(&s.name, "name", "", "`NAME` of the agent (default: this host's); several agents append their partition's name")
	f.StringVar(&s.ca, "ca", "", "`DIR` of the authority that certifies the agent (default: none; 'ramp ca issue' makes a certificate)")
	cli.Choices(c, "driver", "slurm", "pbs", "local", "command", "swf")
	s.joins.register(c)
	f.BoolVar(&s.force, "force", false, "overwrite an existing configuration")
}

// make inspects the machine, and writes only once everything was checked.
func (s *siteInit) make(now time.Time) (madeSite, error) {
	if err := s.complete(); err != nil {
		return madeSite{}, err
	}
	list, left, err := config.Inspect(s.Inspection)
	if err != nil {
		return madeSite{}, err
	}
	made := madeSite{Driver: s.Driver, Dir: s.dir, LeftOut: append([]config.LeftOut{}, left...)}
	texts := make([][]byte, len(list))
	for i, f := range list {
		a := madeAgent{Found: f, Dir: s.dir, Missing: []string{}}
		if len(list) > 1 {
			a.Dir = filepath.Join(s.dir, f.Name)
		}
		a.Config = filepath.Join(a.Dir, config.Name)
		if config.IsThere(a.Config) && !s.force && !s.joins.asked() {
			return made, exit.Fail(exit.Usage, "--force overwrites it", "%s exists already", a.Config)
		}
		terms := s.SiteTerms
		if terms.JobsDir, err = filepath.Abs(a.Dir); err != nil {
			return made, err
		}
		terms.JobsDir = terms.JobsOf(s.Driver, terms.JobsDir)
		if texts[i], err = config.Text(s.Inspection, f, terms, now); err != nil {
			return made, err
		}
		made.Agents = append(made.Agents, a)
	}
	for i := range made.Agents {
		if err := s.write(&made.Agents[i], texts[i], len(list) > 1); err != nil {
			return made, err
		}
	}
	return made, nil
}

func (s *siteInit) complete() error {
	s.Driver = cmp.Or(s.Driver, config.LikelyDriver())
	if err := s.CheckPrograms(s.Driver); err != nil {
		return err
	}
	s.SiteTerms.Inspect(s.Driver)
	if len(s.Users) == 0 {
		s.Users = []string{config.AccountName()}
	}
	// The daemon may start without this shell's environment.
	s.Conf = cmp.Or(s.Conf, os.Getenv(map[string]string{"slurm": "SLURM_CONF", "pbs": "PBS_CONF_FILE"}[s.Driver]))
	for _, path := range []*string{&s.Conf, &s.Log, &s.Program, &s.Claims} {
		if err := makeAbsolute(path); err != nil {
			return err
		}
	}
	if s.Bank != "" {
		if err := protocol.AgentID(s.Bank).Validate(); err != nil {
			return exit.Fail(exit.Usage, "'ramp ca show' prints the agent of a certificate", "--bank: %w", err)
		}
	}
	if err := mesh.CheckAddresses(s.Listen, s.Bootstrap); err != nil {
		return exit.Fail(exit.Usage, "", "--%w", err)
	}
	start, err1 := protocol.ParseCredits(s.Start)
	least, err2 := protocol.ParseCredits(s.Least)
	switch {
	case err1 != nil:
		return exit.Fail(exit.Usage, "", "--start-price: %w", err1)
	case err2 != nil:
		return exit.Fail(exit.Usage, "", "--minimum-price: %w", err2)
	case least < 0 || start < least:
		return exit.Fail(exit.Usage, "", "--start-price %s: want at least the minimum price %s", s.Start, s.Least)
	}
	return nil
}

func makeAbsolute(path *string) error {
	if *path == "" {
		return nil
	}
	abs, err := filepath.Abs(*path)
	if err != nil {
		return exit.Fail(exit.Usage, "", "%s: %w", *path, err)
	}
	*path = abs
	return nil
}

// write makes an agent's directory with its configuration, and with a credential if it has none
// and an authority is at hand.
func (s *siteInit) write(a *madeAgent, text []byte, several bool) error {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := s.certify(a, several); err != nil {
		return err
	}
	if a.Again = config.IsThere(a.Config) && !s.force; a.Again {
		return nil
	}
	if err := config.ReplaceFile(a.Config, text, 0o600); err != nil {
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	if a.Agent == "" && !s.joins.asked() {
		a.Missing = append(a.Missing, "a certificate: ramp ca issue NAME --out "+words.ShellWord(a.Dir))
	}
	if s.Programs == "" {
		a.Notes = append(a.Notes, "buyers may not run programs here, so 'ramp run' does not buy from it; to allow them, see --programs and docs/JOBS.md")
	}
	a.Notes = append(a.Notes, s.Exposed(s.Driver)...)
	if account := s.Account(); account != "" && account != config.AccountName() && s.Driver != "local" {
		a.Missing = append(a.Missing, fmt.Sprintf("a directory for jobs: 'resource.jobs.dir' in %s, which all nodes see and the account %s can pass through", a.Config, account))
	}
	switch {
	case s.Bank == "":
		a.Missing = append(a.Missing, "a bank: 'resource.pay' in "+a.Config)
	case a.Agent != "" && !s.joins.asked():
		a.Notes = append(a.Notes, fmt.Sprintf("it sells once its bank has opened an account for it: ramp bank account open %s --cert %s", a.Agent.Name(), filepath.Join(a.Dir, "agent.pem")))
	}
	return nil
}

func (s *siteInit) certify(a *madeAgent, several bool) error {
	if s.joins.asked() {
		return s.joins.join(a, s.agentName(a.Name, several), several)
	}
	path := filepath.Join(a.Dir, "agent.pem")
	if !config.IsThere(path) && s.ca != "" {
		ca, err := join.AuthorityAt(s.ca)
		if err != nil {
			return err
		}
		if _, err := join.Issue(ca, s.agentName(a.Name, several), join.LeafLifetime, a.Dir); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil //nolint:nilerr // printMade reports that there is no certificate
	}
	id, err := join.CertificateID(b)
	if err != nil {
		return err
	}
	a.Agent = protocol.AgentID(id)
	return nil
}

func (s *siteInit) agentName(part string, several bool) string {
	name := s.name
	if name == "" {
		host, err := os.Hostname()
		if name, _, _ = strings.Cut(host, "."); err != nil || name == "" {
			name = "site"
		}
	}
	if several {
		name += "-" + part
	}
	return strings.ToLower(name)
}

// printMade prints what was made, and what remains to be done.
func printMade(w io.Writer, m madeSite) {
	for _, a := range m.Agents {
		fmt.Fprintf(w, "%s: %s\n", a.Config, config.Machine(config.Inspection{Driver: m.Driver}, a.Found))
		fmt.Fprintf(w, "  a sold slot will be %s\n", a.Hold)
		if a.HoldWhy != "" {
			fmt.Fprintf(w, "  %s\n", a.HoldWhy)
		}
		for _, n := range a.Notes {
			fmt.Fprintf(w, "  note: %s\n", n)
		}
		for _, n := range a.Missing {
			fmt.Fprintf(w, "  still missing: %s\n", n)
		}
	}
	for _, l := range m.LeftOut {
		fmt.Fprintf(w, "left out %s: %s\n", l.Name, l.Why)
	}
	fmt.Fprintf(w, "next: %[1]s resource check --dry-run --dir %[2]s\n      %[1]s resource serve --dir %[2]s\n", cli.Self(), words.ShellWord(m.Dir))
}
