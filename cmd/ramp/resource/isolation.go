package resource

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/queue/escape"
	"ramp/agents/queue/slurm"
	"ramp/agents/resource/launch"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

// tryEscape is the hidden command that makes the attempts of 'check --isolation'.
const tryEscape = "try-escape"

// NewTryEscape is the program of the jobs that isolation runs.
func NewTryEscape() *cobra.Command {
	return &cobra.Command{
		Use: tryEscape + " TARGETS", Short: "Try to break out of a job (for 'ramp resource check --isolation')", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return escape.Try(c.OutOrStdout(), args[0]) },
	}
}

// isolation tries to break out of jobs of each site.
func isolation(c *cobra.Command) error {
	paths, err := cli.Fleet(c)
	if err != nil {
		return err
	}
	fmt.Fprintln(cli.Stderr(c), "trying to break out of jobs; this takes about half a minute")
	list := []escape.Result{}
	for _, path := range paths {
		found, err := escapes(c, path)
		if err != nil {
			return err
		}
		list = append(list, found...)
	}
	rows, n := [][]string{{"attempt", "what stopped it"}}, 0
	for _, r := range list {
		if r.Succeeded {
			n++
			r.StoppedBy = "NOTHING: it succeeded"
		}
		rows = append(rows, []string{r.Attempt, r.StoppedBy})
	}
	err = cli.Show(c, list, func(w io.Writer) { cli.Table(w, rows...) })
	if err == nil && n > 0 {
		return exit.Fail(exit.Failed, "docs/JOBS.md#containment says what contains jobs", "%d of %d attempts to break out succeeded", n, len(list))
	}
	return err
}

// escapes runs the attempts in jobs of a site's driver.
func escapes(c *cobra.Command, path string) ([]escape.Result, error) {
	cfg, err := config.Read(path)
	if err != nil {
		return nil, err
	}
	cred, err := cfg.Credential()
	if err != nil {
		return nil, err
	}
	if err := config.CheckKind("resource", path, cfg, cred, nil); err != nil {
		return nil, err
	}
	l, err := cfg.Launches(cred.ID, config.Quiet())
	if err != nil {
		return nil, err
	}
	if len(l.Policy.Accounts) == 0 || cfg.Resource.Driver == "swf" {
		return nil, exit.Fail(exit.Usage, "set resource.jobs", "%s runs no programs: there is nothing to break out of", path)
	}
	// A name of its own keeps its reservations apart from those of the running agent.
	agent := protocol.AgentID("isolation" + string(cred.ID[slices.Index([]byte(cred.ID), '@'):]))
	d, err := config.Drivers[cfg.Resource.Driver](cfg, agent, config.Quiet())
	if err != nil {
		return nil, err
	}
	who, ok := l.Policy.Accounts[launch.Everybody]
	if !ok {
		who = l.Policy.Accounts[slices.Sorted(maps.Keys(l.Policy.Accounts))[0]]
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if cfg.Resource.Driver == "slurm" {
		for _, what := range slurm.Uncontained(cfg.Slurm(agent, config.Quiet())) {
			fmt.Fprintln(cli.Stderr(c), "note: Slurm's", what)
		}
	}
	users := who.Pool
	if len(users) == 0 {
		users = []string{who.User}
	}
	return escape.Run(c.Context(), d, escape.Site{
		Agent: agent, Root: l.Root, Users: users, Program: []string{self, tryEscape}, Network: cfg.Resource.Jobs.Network,
		Files: map[string]string{
			"read the agent's key": cfg.Path(cfg.Key), "read the agent's configuration": path,
			"read the agent's journal": cfg.Path(config.JournalName), "connect to the agent's control socket": control.SocketPath(cfg.Dir),
		},
	})
}
