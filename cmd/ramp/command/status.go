package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/mesh"
	"ramp/bank/boltfile"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// kinds are the agents that a person may have, each in a directory of its own.
var kinds = []string{"user", "resource", "bank"}

// certificateSoon is how long before its end a certificate is warned of.
const certificateSoon = 30 * 24 * time.Hour

// statusCallTime bounds what is waited for a daemon.
const statusCallTime = 10 * time.Second

// liveStatus is what a daemon says of itself.
type liveStatus struct {
	Agent     protocol.AgentID `json:"agent"`
	Since     time.Time        `json:"since"`
	Addresses []string         `json:"addresses"`
	Peers     int              `json:"peers"` // connected agents
	Users     int              `json:"users"` // known, by kind
	Resources int              `json:"resources"`
	Banks     int              `json:"banks"`
	// Of a bank agent while it does not lead: who does, or why nobody is known to.
	Follows string `json:"follows,omitempty"`
	Waits   string `json:"waits,omitempty"`
}

// stands reports whether a bank agent has no part in the market now.
func (s *liveStatus) stands() bool { return s.Follows != "" || s.Waits != "" }

// agentStatus is how one agent of this machine stands.
type agentStatus struct {
	Dir       string           `json:"dir"`
	Kind      string           `json:"kind"`
	Agent     protocol.AgentID `json:"agent,omitempty"`
	NotAfter  time.Time        `json:"not_after,omitzero"` // of its certificate
	Bootstrap []string         `json:"bootstrap,omitempty"`
	Pay       []payConfig      `json:"pay,omitempty"`
	Running   bool             `json:"running"`
	Live      *liveStatus      `json:"live,omitempty"`
	Health    string           `json:"health"` // good, idle or bad
	Why       string           `json:"why,omitempty"`
}

const (
	healthGood = "good"
	healthIdle = "idle" // its daemon does not run
	healthBad  = "bad"
)

func newStatus() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "status", Short: "Say what this machine has joined, as whom, and how healthy it is", Args: cobra.NoArgs,
		Long: `Says of every agent of this machine who it is, which market it joins, whether its daemon
runs, whom it sees, and what is wrong. It looks into --dir, else $RAMP_DIR, else the
default directories of a user, a resource and a bank. It ends with 1 if one is bad.
'ramp doctor' looks closer.`,
		RunE: func(c *cobra.Command, _ []string) error {
			dirs, err := agentDirs(dir)
			if err != nil {
				return err
			}
			list := make([]agentStatus, 0, len(dirs))
			bad := false
			for _, d := range dirs {
				s := statusOf(c.Context(), d)
				bad = bad || s.Health == healthBad
				list = append(list, s)
			}
			if err := printAgents(c, list); err != nil {
				return err
			}
			if bad {
				return silent(exitFailed)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "an agent's directory (default: $RAMP_DIR, or all in their default places)")
	return c
}

// agentDirs are the directories of agents that are meant: each has a configuration.
func agentDirs(flag string) ([]string, error) {
	if flag == "" {
		flag = os.Getenv("RAMP_DIR")
	}
	if flag != "" {
		dirs := agentsIn(flag)
		if len(dirs) == 0 {
			return nil, noAgents(flag)
		}
		return dirs, nil
	}
	var dirs []string
	for _, kind := range kinds {
		d, err := agentDir("", kind)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, agentsIn(d)...)
	}
	if len(dirs) == 0 {
		d, _ := agentDir("", "user") // it was found above
		return nil, noAgents(filepath.Dir(d))
	}
	return dirs, nil
}

// agentsIn is a directory with a configuration, or else those in it that have one,
// such as those of a site with several partitions.
func agentsIn(dir string) []string {
	if isThere(filepath.Join(dir, configName)) {
		return []string{dir}
	}
	var dirs []string
	for _, path := range configsBelow(dir) {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

func noAgents(dir string) error {
	return fail(exitUsage, "'ramp user init --join INVITATION' joins a market; 'ramp demo --keep' makes one", "no agent in %s", dir)
}

// statusOf looks at the agent of a directory.
func statusOf(ctx context.Context, dir string) agentStatus {
	s := agentStatus{Dir: dir, Health: healthIdle}
	bad := func(err error) agentStatus {
		s.Health, s.Why = healthBad, err.Error()
		return s
	}
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return bad(err)
	}
	s.Kind, s.Bootstrap, s.Pay = cfg.kind(), cfg.Bootstrap, cfg.pays()
	cred, err := cfg.credential()
	if err != nil {
		return bad(err)
	}
	s.Agent, s.NotAfter = cred.ID, cred.Chain[0].NotAfter.UTC()
	if err := cfg.vouched(cred); err != nil {
		return bad(err)
	}
	d, running := meetDaemon(dir)
	if !running {
		if who, err := boltfile.Holder(cfg.dataFile()); err == nil && who != nil {
			return bad(fmt.Errorf("%w, and does not answer: 'ramp doctor' looks closer", who))
		}
		return s
	}
	s.Running = true
	ctx, cancel := context.WithTimeout(ctx, statusCallTime)
	defer cancel()
	s.Live = &liveStatus{}
	if err := d.call(ctx, "POST", "/v1/agent", nil, s.Live); err != nil {
		s.Live = nil
		return bad(fmt.Errorf("its daemon: %w", err))
	}
	if s.Health, s.Why = liveHealth(s); s.Health != healthGood || s.Live.stands() {
		return s
	}
	if why := cfg.lacksRoom(); why != "" {
		return bad(errors.New(why + ": " + roomHelp))
	}
	if s.Kind == "bank" {
		if t := troubleOf(ctx, d); t.words != "" {
			return bad(errors.New(t.words + "; " + t.help))
		}
	}
	if said, err := askClocksOf(ctx, d); err == nil && said.wrongHere() {
		return bad(errors.New(said.words() + ": set it"))
	}
	return s
}

// liveHealth says how an agent is whose daemon runs.
func liveHealth(s agentStatus) (health, why string) {
	switch {
	case s.Live.Waits != "":
		return healthBad, s.Live.Waits
	case s.Live.Follows != "":
		return healthGood, ""
	case s.Live.Peers == 0 && len(s.Bootstrap) > 0:
		return healthBad, "it is connected to nobody: 'ramp doctor' tells why"
	case s.Kind != "bank" && s.Live.Banks == 0:
		return healthBad, "it sees no bank"
	case time.Until(s.NotAfter) < certificateSoon:
		return healthGood, "its certificate ends soon"
	}
	return healthGood, ""
}

// kind is what kind of agent a configuration is for.
func (c *config) kind() string {
	switch {
	case c.Bank != nil:
		return "bank"
	case c.Resource != nil:
		return "resource"
	}
	return "user"
}

// pays are the banks and currencies that an agent deals in.
func (c *config) pays() []payConfig {
	switch {
	case c.User != nil:
		return c.User.Pay
	case c.Resource != nil:
		return c.Resource.Pay
	}
	return nil
}

// vouched reports whether an agent's own certificate counts in its market now.
func (c *config) vouched(cred *identity.Credential) error {
	trust, err := c.trust()
	if err != nil {
		return err
	}
	if _, err := trust.Verify(cred.ChainDER(), time.Now()); err != nil {
		return certificateFault(c.path(c.Certificate), err)
	}
	return nil
}

func printAgents(c *cobra.Command, list []agentStatus) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), list)
	}
	for _, s := range list {
		table(stdout(c), s.rows()...)
	}
	return nil
}

// rows are what a person reads of an agent.
func (s agentStatus) rows() [][]string {
	rows := [][]string{{orDash(s.Kind), orDash(string(s.Agent))}, {"directory", s.Dir}}
	if !s.NotAfter.IsZero() {
		rows = append(rows, []string{"certificate", fmt.Sprintf("until %s (%s)", s.NotAfter.Format(time.DateOnly), daysWords(time.Until(s.NotAfter)))})
	}
	if len(s.Bootstrap) > 0 {
		rows = append(rows, []string{"joins by", strings.Join(s.Bootstrap, " ")})
	}
	for _, p := range s.Pay {
		rows = append(rows, []string{"pays", p.Currency + " at " + protocol.AgentID(p.Bank).Name()})
	}
	daemon := "does not run; commands do the work themselves"
	if s.Kind != "user" {
		daemon = "does not run: 'ramp " + s.Kind + " serve'"
	}
	switch {
	case s.Live != nil && s.Live.stands():
		daemon = fmt.Sprintf("runs since %s UTC, and does not lead", secondTime(s.Live.Since))
		if s.Live.Follows != "" {
			daemon += ": " + s.Live.Follows + " does"
		}
	case s.Live != nil:
		daemon = fmt.Sprintf("runs since %s UTC, connected to %s; sees %s, %s, %s", secondTime(s.Live.Since), plural(s.Live.Peers, "agent"),
			plural(s.Live.Resources, "resource"), plural(s.Live.Banks, "bank"), plural(s.Live.Users, "user"))
	}
	rows = append(rows, []string{"daemon", daemon})
	health := s.Health
	if s.Why != "" {
		health += ": " + s.Why
	}
	return append(rows, []string{"health", health})
}

// daysWords says how long something still lasts.
func daysWords(d time.Duration) string {
	if d < 0 {
		return "it has ended"
	}
	return plural(int(d/(24*time.Hour)), "day") + " left"
}

func (n *node) statusRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/agent", handler(n.status))
	mux.HandleFunc("POST /v1/clocks", handler(n.clocks))
}

func (n *node) status(context.Context, struct{}) (liveStatus, error) {
	s := liveStatus{Agent: n.cred.ID, Since: n.since.UTC(), Addresses: n.mesh.Addresses()}
	for _, k := range n.mesh.Known() {
		if k.Connected {
			s.Peers++
		}
		if !k.Connected && !time.Now().Before(k.Until) {
			continue
		}
		switch k.Kind {
		case protocol.KindUser:
			s.Users++
		case protocol.KindResource:
			s.Resources++
		case protocol.KindBank:
			s.Banks++
		}
	}
	return s, nil
}

// clockView is how another agent's clock stands.
type clockView struct {
	Agent    protocol.AgentID `json:"agent"`
	AheadMS  int64            `json:"ahead_ms"` // of this one's
	WithinMS int64            `json:"within_ms"`
}

func (n *node) clocks(ctx context.Context, _ struct{}) ([]clockView, error) {
	return clockViews(n.mesh.Clocks(ctx)), nil
}

func clockViews(all []mesh.Clock) []clockView {
	list := []clockView{}
	for _, k := range all {
		list = append(list, clockView{k.Agent, k.Ahead.Milliseconds(), k.Within.Milliseconds()})
	}
	return list
}
