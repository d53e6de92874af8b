// Package agent has the commands for an agent of any kind: status, doctor, version and
// the check of a configuration.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/doctor"
	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/agents/words"
	"ramp/bank/boltfile"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

type agentStatus struct {
	Dir       string              `json:"dir"`
	Kind      string              `json:"kind"`
	Agent     protocol.AgentID    `json:"agent,omitempty"`
	NotAfter  time.Time           `json:"not_after,omitzero"` // end of its certificate
	Bootstrap []string            `json:"bootstrap,omitempty"`
	Pay       []config.Pay        `json:"pay,omitempty"`
	Running   bool                `json:"running"`
	Live      *control.LiveStatus `json:"live,omitempty"`
	Mismatch  []string            `json:"mismatch,omitempty"` // members of its federation with other rules
	Shortage  string              `json:"shortage,omitempty"` // why its federation has fewer cores than are configured
	Health    string              `json:"health"`             // good, idle or bad
	Why       string              `json:"why,omitempty"`
}

const healthIdle = "idle" // its daemon does not run

func NewStatus() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "status", Short: "Show the agents of this machine, their markets and their health", Args: cobra.NoArgs, GroupID: "start",
		Long: `Show for every agent of this machine its ID, the market it joins, how it pays, whether its
daemon runs, which agents it sees, and its health: good, idle (the daemon does not run) or bad.
It checks --dir, else $RAMP_DIR, else the default directories of a user, a resource and a bank.
Ends with 1 if one is bad; 'ramp doctor' finds the cause.`,
		Example: "  ramp status\n  ramp status --dir site --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			dirs, err := agentDirs(dir)
			if err != nil {
				return err
			}
			list := make([]agentStatus, 0, len(dirs))
			bad := false
			for _, d := range dirs {
				s := statusOf(c.Context(), d)
				bad = bad || s.Health == doctor.Bad
				list = append(list, s)
			}
			if err := printAgents(c, list); err != nil {
				return err
			}
			if bad {
				return exit.Silent(exit.Failed)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "`DIR` of an agent (default: $RAMP_DIR, or all in their default places)")
	return cli.Watched(c)
}

// agentDirs are the directories of the agents to check; each has a configuration.
func agentDirs(flag string) ([]string, error) {
	flag = cmp.Or(flag, os.Getenv("RAMP_DIR"))
	if flag != "" {
		dirs := agentsIn(flag)
		if len(dirs) == 0 {
			return nil, noAgents(flag)
		}
		return dirs, nil
	}
	var dirs []string
	for _, kind := range config.Kinds {
		d, err := config.AgentDir("", kind)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, agentsIn(d)...)
	}
	if len(dirs) == 0 {
		d, _ := config.AgentDir("", "user") // it succeeded above
		return nil, noAgents(filepath.Dir(d))
	}
	return dirs, nil
}

// agentsIn is a directory with a configuration, or else its subdirectories that have one, such as
// those of a site with several partitions.
func agentsIn(dir string) []string {
	if config.IsThere(filepath.Join(dir, config.Name)) {
		return []string{dir}
	}
	var dirs []string
	for _, path := range config.Below(dir) {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

func noAgents(dir string) error {
	return exit.Fail(exit.Usage, "'ramp user init --join INVITATION' joins a market; 'ramp demo --keep' makes one", "no agent in %s", dir)
}

func statusOf(ctx context.Context, dir string) agentStatus {
	s := agentStatus{Dir: dir, Health: healthIdle}
	bad := func(err error) agentStatus {
		s.Health, s.Why = doctor.Bad, err.Error()
		return s
	}
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return bad(err)
	}
	s.Kind, s.Bootstrap, s.Pay = cfg.Kind(), cfg.Bootstrap, cfg.Pays()
	cred, err := cfg.Credential()
	if err != nil {
		return bad(err)
	}
	s.Agent, s.NotAfter = cred.ID, cred.Chain[0].NotAfter.UTC()
	vouched := cfg.Vouched(cred)
	d, running := control.Meet(dir)
	if !running {
		if vouched != nil {
			return bad(vouched)
		}
		if who, err := boltfile.Holder(cfg.DataFile()); err == nil && who != nil {
			return bad(fmt.Errorf("%w, and does not answer; see 'ramp doctor'", who))
		}
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, control.StatusCallTime)
	defer cancel()
	s.Running, s.Live = true, &control.LiveStatus{}
	if err := control.Agent.Ask(ctx, d, struct{}{}, s.Live); err != nil {
		s.Live = nil
		return bad(fmt.Errorf("its daemon: %w", err))
	}
	if vouched != nil {
		return bad(vouched)
	}
	s.Mismatch, s.Shortage = federationOf(ctx, cfg, d)
	if s.Health, s.Why = liveHealth(s); s.Health != doctor.Good || s.Live.Standby() {
		return s
	}
	if why := troubleOf(ctx, cfg, d); why != "" {
		return bad(errors.New(why))
	}
	return s
}

// troubleOf says what an agent's owner should mend; empty: nothing.
func troubleOf(ctx context.Context, cfg *config.Config, d *control.Client) string {
	if why := cfg.FullDisk(); why != "" {
		return why + ": " + config.DiskHelp
	}
	if cfg.Bank != nil {
		if t := doctor.TroubleOf(ctx, d); t.Words != "" {
			return t.Words + "; " + t.Help
		}
	}
	if k, err := doctor.AskClocksOf(ctx, d); err == nil && k.WrongHere() {
		return k.Words() + ": set it"
	}
	return ""
}

// federationOf are the members of a site's federation that have other rules: they and the site
// do not bid for each other's jobs. It also says why the site has too few cores for it.
func federationOf(ctx context.Context, cfg *config.Config, d *control.Client) (list []string, shortage string) {
	if cfg.Resource == nil {
		return nil, ""
	}
	var q control.SiteQueue
	if control.FederationQueue.Ask(ctx, d, control.None{}, &q) != nil {
		return nil, ""
	}
	for _, m := range slices.Sorted(maps.Keys(q.Members)) {
		if q.Members[m] == "mismatch" {
			list = append(list, m)
		}
	}
	return list, q.Shortage
}

// liveHealth is the health of an agent whose daemon runs.
func liveHealth(s agentStatus) (health, why string) {
	switch {
	case s.Live.Waits != "":
		return doctor.Bad, s.Live.Waits
	case s.Live.Follows != "":
		return doctor.Good, ""
	case s.Live.Peers == 0 && len(s.Bootstrap) > 0:
		return doctor.Bad, "it is connected to nobody; see 'ramp doctor'"
	case s.Kind != "bank" && s.Live.Banks == 0:
		return doctor.Bad, "it sees no bank"
	case time.Until(s.NotAfter) < doctor.CertificateSoon:
		return doctor.Good, "its certificate expires soon"
	}
	return doctor.Good, ""
}

func printAgents(c *cobra.Command, list []agentStatus) error {
	return cli.Show(c, list, func(w io.Writer) {
		for _, s := range list {
			cli.Table(w, s.rows()...)
		}
	})
}

func (s agentStatus) rows() [][]string {
	rows := [][]string{{words.OrDash(s.Kind), words.OrDash(string(s.Agent))}, {"directory", s.Dir}}
	if !s.NotAfter.IsZero() {
		rows = append(rows, []string{"certificate", fmt.Sprintf("until %s (%s)", words.Date(s.NotAfter), doctor.DaysWords(time.Until(s.NotAfter)))})
	}
	if len(s.Bootstrap) > 0 {
		rows = append(rows, []string{"joins by", strings.Join(s.Bootstrap, " ")})
	}
	for _, p := range s.Pay {
		rows = append(rows, []string{"pays", p.Currency + " at " + protocol.AgentID(p.Bank).Name()})
	}
	daemon := "not running; start it with 'ramp " + s.Kind + " serve'"
	if s.Kind == "user" {
		daemon = "not running; the next command starts it, unless 'daemon: false'"
	}
	switch {
	case s.Live != nil && s.Live.Standby():
		daemon = fmt.Sprintf("running since %s, as a follower", words.At(s.Live.Since))
		if s.Live.Follows != "" {
			daemon += "; " + s.Live.Follows + " leads"
		}
	case s.Live != nil:
		daemon = fmt.Sprintf("running since %s, connected to %s; sees %s, %s, %s", words.At(s.Live.Since), words.Plural(s.Live.Peers, "agent"),
			words.Plural(s.Live.Resources, "resource"), words.Plural(s.Live.Banks, "bank"), words.Plural(s.Live.Users, "user"))
	}
	rows = append(rows, []string{"daemon", daemon})
	if s.Live != nil && !s.Live.Standby() && s.Live.Reach.Kind != mesh.ReachLocal {
		r := s.Live.Reach
		rows = append(rows, []string{"reached", doctor.ReachWords(r)}, []string{"connections", fmt.Sprintf("%d TCP, %d QUIC, %d relayed", r.TCP, r.QUIC, r.Relayed)})
	}
	if s.Live != nil && !s.Live.Standby() {
		rows = append(rows, gossipRows(s.Live)...)
	}
	for _, m := range s.Mismatch {
		rows = append(rows, []string{"mismatch", m + " has other rules of the federation; the two do not bid for each other's jobs"})
	}
	if s.Shortage != "" {
		rows = append(rows, []string{"federation", s.Shortage})
	}
	health := s.Health
	if s.Why != "" {
		health += ": " + s.Why
	}
	return append(rows, []string{"health", health})
}

// gossipRows are what presences have cost, and what the agent's index holds.
func gossipRows(s *control.LiveStatus) [][]string {
	g := s.Gossip
	line := fmt.Sprintf("%.1f MB in, %.1f MB out", float64(g.In)/1e6, float64(g.Out)/1e6)
	if g.Low > 0 {
		line += fmt.Sprintf("; %s misbehave, %d so much that they are not heard", words.Plural(g.Low, "peer"), g.Deaf)
	}
	rows := [][]string{{"presences", line}}
	if x := s.Index; x != nil {
		rows = append(rows, []string{"index", fmt.Sprintf("%s of a market of %s; %d other indexes", words.Plural(x.Records, "record"), words.Plural(x.Market, "seller"), x.Servers)})
	}
	return rows
}
