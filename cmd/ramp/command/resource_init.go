package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/mesh"
	"ramp/protocol"
)

// siteInit is what init makes resource agents of.
type siteInit struct {
	inspection
	siteTerms
	dir, name, ca string
	force         bool
	joins         siteJoin
}

// madeAgent is one agent that was made.
type madeAgent struct {
	found
	Dir     string           `json:"dir"`
	Config  string           `json:"config"`
	Agent   protocol.AgentID `json:"agent,omitempty"` // empty: it has no certificate yet
	Missing []string         `json:"missing"`         // before it can sell
	Credit  protocol.Credits `json:"credit,omitempty"`
	Again   bool             `json:"again,omitempty"` // it was made before; its configuration stays
}

// madeSite is what init says.
type madeSite struct {
	Driver  string      `json:"driver"`
	Dir     string      `json:"dir"`
	Agents  []madeAgent `json:"agents"`
	LeftOut []leftOut   `json:"left_out"`
}

func newResourceInit() *cobra.Command {
	var s siteInit
	c := &cobra.Command{
		Use: "init", Short: "Inspect the machine and write a configuration that is right for it", Args: cobra.NoArgs,
		Long: `Asks the batch system what there is (partitions, nodes, cores, memory, features, and
whether this account may reserve) and writes config.yaml, with comments. Of several
Slurm partitions each gets an agent of its own, in a directory of its name below
--dir; 'ramp resource serve --dir DIR' then runs them all. With --join each agent joins
the market of the invitation, as 'ramp user init' does; with --ca it gets a certificate
of that authority. Nothing is overwritten without --force, and never a key.`,
		Example: "  ramp resource init --join invitation.ramp\n  ramp resource check --dry-run\n  ramp resource serve\n\n  ramp resource init --driver slurm --ca ca --bank bank@… --currency CPU --dir site\n  ramp resource check --dry-run --dir site\n  ramp resource serve --dir site",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if s.dir, err = dirOf(c, "resource"); err != nil {
				return err
			}
			if err := s.joins.read(c, &s); err != nil {
				return err
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
	f.StringVar(&s.driver, "driver", "", "slurm, pbs, local, command or swf (default: the batch system whose commands are installed, else local)")
	f.StringArrayVar(&s.partitions, "partition", nil, "slurm: a partition to sell; may be given many times (default: all)")
	f.StringVar(&s.conf, "conf", "", "slurm, pbs: path of its configuration (default: $SLURM_CONF or $PBS_CONF_FILE, else its own default)")
	f.StringSliceVar(&s.prefix, "prefix", nil, "slurm, pbs: words before each command, with commas between: sudo,-n,-u,slurm")
	f.StringVar(&s.log, "log", "", "swf: the workload log")
	f.StringVar(&s.program, "program", "", "command: the program")
	f.StringVar(&s.claims, "claims", "", "local: directory in which the agents of this machine keep what they sold (default: one for all)")
	f.StringSliceVar(&s.Users, "users", nil, "accounts that may run jobs in what is sold (default: this account)")
	f.StringVar(&s.Bank, "bank", "", "agent ID of the bank that it deals with")
	f.StringVar(&s.Currency, "currency", "CPU", "one of the bank's currencies")
	f.StringVar(&s.Start, "start-price", "2", "credits per core-hour at which it opens")
	f.StringVar(&s.Least, "minimum-price", "1", "credits per core-hour below which it never goes")
	f.StringArrayVar(&s.Listen, "listen", []string{"/ip4/127.0.0.1/tcp/0"}, "address to listen on; may be given many times")
	f.StringArrayVar(&s.Bootstrap, "bootstrap", nil, "address of an agent of the market; may be given many times")
	f.StringVar(&s.name, "name", "", "the agent's name (default: this host's)")
	f.StringVar(&s.ca, "ca", "", "directory of the authority that certifies it (default: none; 'ramp ca issue' makes the certificate)")
	s.joins.register(c)
	f.BoolVar(&s.force, "force", false, "overwrite a configuration that is there")
}

// make inspects the machine, and writes once everything makes sense.
func (s *siteInit) make(now time.Time) (madeSite, error) {
	if err := s.complete(); err != nil {
		return madeSite{}, err
	}
	list, left, err := inspect(s.inspection)
	if err != nil {
		return madeSite{}, err
	}
	made := madeSite{Driver: s.driver, Dir: s.dir, LeftOut: append([]leftOut{}, left...)}
	texts := make([][]byte, len(list))
	for i, f := range list {
		a := madeAgent{found: f, Dir: s.dir, Missing: []string{}}
		if len(list) > 1 {
			a.Dir = filepath.Join(s.dir, f.Name)
		}
		a.Config = filepath.Join(a.Dir, configName)
		if isThere(a.Config) && !s.force && !s.joins.asked() {
			return made, fail(exitUsage, "--force overwrites it", "%s is there already", a.Config)
		}
		if texts[i], err = configText(s.inspection, f, s.siteTerms, now); err != nil {
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

// complete fills in what was not said, and checks what was.
func (s *siteInit) complete() error {
	if s.driver == "" {
		s.driver = likelyDriver()
	}
	if len(s.Users) == 0 {
		s.Users = []string{account()}
	}
	if s.conf == "" { // the daemon may be started without what this shell was told
		s.conf = os.Getenv(map[string]string{"slurm": "SLURM_CONF", "pbs": "PBS_CONF_FILE"}[s.driver])
	}
	for _, path := range []*string{&s.conf, &s.log, &s.program, &s.claims} {
		if err := makeAbsolute(path); err != nil {
			return err
		}
	}
	if s.Bank != "" {
		if err := protocol.AgentID(s.Bank).Validate(); err != nil {
			return fail(exitUsage, "'ramp ca show' prints the agent of a certificate", "--bank: %w", err)
		}
	}
	if err := mesh.CheckAddresses(s.Listen, s.Bootstrap); err != nil {
		return fail(exitUsage, "", "--listen or --bootstrap: %w", err)
	}
	start, err1 := protocol.ParseCredits(s.Start)
	least, err2 := protocol.ParseCredits(s.Least)
	switch {
	case err1 != nil:
		return fail(exitUsage, "", "--start-price: %w", err1)
	case err2 != nil:
		return fail(exitUsage, "", "--minimum-price: %w", err2)
	case least < 0 || start < least:
		return fail(exitUsage, "", "--start-price %s: want at least the minimum price %s", s.Start, s.Least)
	}
	return nil
}

func makeAbsolute(path *string) error {
	if *path == "" {
		return nil
	}
	abs, err := filepath.Abs(*path)
	if err != nil {
		return fail(exitUsage, "", "%s: %w", *path, err)
	}
	*path = abs
	return nil
}

// write makes an agent's directory: its configuration, and its credential if an
// authority is at hand and there is none yet.
func (s *siteInit) write(a *madeAgent, text []byte, several bool) error {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	if err := s.certify(a, several); err != nil {
		return err
	}
	if a.Again = isThere(a.Config) && !s.force; a.Again {
		return nil
	}
	if err := replaceFile(a.Config, text, 0o600); err != nil {
		return fail(exitFailed, "", "%w", err)
	}
	if a.Agent == "" && !s.joins.asked() {
		a.Missing = append(a.Missing, "a certificate: ramp ca issue NAME --out "+shellWord(a.Dir))
	}
	switch {
	case s.Bank == "":
		a.Missing = append(a.Missing, "a bank: 'resource.pay' in "+a.Config)
	case a.Agent != "" && !s.joins.asked():
		a.Notes = append(a.Notes, fmt.Sprintf("it sells once its bank has opened it an account: ramp bank account open %s --cert %s", a.Agent.Name(), filepath.Join(a.Dir, "agent.pem")))
	}
	return nil
}

func (s *siteInit) certify(a *madeAgent, several bool) error {
	if s.joins.asked() {
		return s.joins.join(a, s.agentName(a.Name, several), several)
	}
	path := filepath.Join(a.Dir, "agent.pem")
	if !isThere(path) && s.ca != "" {
		ca, err := authorityAt(s.ca)
		if err != nil {
			return err
		}
		if _, err := issue(ca, s.agentName(a.Name, several), leafLifetime, a.Dir); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil //nolint:nilerr // it is told that there is none
	}
	id, err := certificateID(b)
	if err != nil {
		return err
	}
	a.Agent = protocol.AgentID(id)
	return nil
}

// agentName is the name in an agent's certificate.
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

// printMade tells what was made, and what is still to do.
func printMade(c *cobra.Command, m madeSite) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), m)
	}
	w := stdout(c)
	for _, a := range m.Agents {
		fmt.Fprintf(w, "%s: %s\n", a.Config, machineWords(inspection{driver: m.Driver}, a.found))
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
	fmt.Fprintf(w, "next: %[1]s resource check --dry-run --dir %[2]s\n      %[1]s resource serve --dir %[2]s\n", self(), shellWord(m.Dir))
	return nil
}
