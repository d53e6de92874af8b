package command

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/mesh"
	"ramp/protocol/identity"
)

// check reports what is wrong with values that every kind of agent has.
func (c *config) check() error {
	if err := checkMonitor(c.Monitor); err != nil {
		return err
	}
	if err := mesh.CheckAddresses(c.Listen, c.Bootstrap); err != nil {
		return fail(exitUsage, "", "configuration: %w", err)
	}
	if h := time.Duration(c.Heartbeat); h != 0 && (h < leastHeartbeat || h > mostHeartbeat) {
		return fail(exitUsage, "", "configuration: heartbeat %s: want %s..%s", h, leastHeartbeat, mostHeartbeat)
	}
	return c.Log.check()
}

// Bounds of a heartbeat. A presence holds for three and a half of them, and nobody hears
// one that would hold for longer than protocol.MaxTTL.
const (
	leastHeartbeat = 100 * time.Millisecond
	mostHeartbeat  = 15 * time.Minute
)

// configChecked is what `config check` prints.
type configChecked struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Kind     string    `json:"kind"`
	Agent    string    `json:"agent"`
	NotAfter time.Time `json:"certificate_not_after"`
}

// newConfig is the command group `config` of a kind of agent.
func newConfig(kind string, paths func(c *cobra.Command) ([]string, error)) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Say what is wrong with a configuration, without starting anything", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return runConfigCheck(c, kind, args)
			}
			files, err := paths(c)
			if err != nil {
				return err
			}
			return runConfigCheck(c, kind, files)
		},
	}
	group.AddCommand(check)
	return group
}

// configsIn are the configurations in the directory of an agent: one.
func configsIn(kind string) func(c *cobra.Command) ([]string, error) {
	return func(c *cobra.Command) ([]string, error) {
		dir, err := dirOf(c, kind)
		return []string{filepath.Join(dir, configName)}, err
	}
}

// runConfigCheck checks one file after the other until one is not good. With
// several the JSON is a list.
func runConfigCheck(c *cobra.Command, kind string, files []string) error {
	list := make([]configChecked, 0, len(files))
	for _, file := range files {
		checked, err := checkConfig(kind, file)
		if err != nil {
			return err
		}
		list = append(list, checked)
	}
	if err := distinct(files); err != nil {
		return err
	}
	switch {
	case wantsJSON(c) && len(list) == 1:
		return printJSON(stdout(c), list[0])
	case wantsJSON(c):
		return printJSON(stdout(c), list)
	}
	for _, k := range list {
		fmt.Fprintf(stdout(c), "%s is good: %s %s, certificate until %s\n", filepath.Clean(k.File), kind, k.Agent, k.NotAfter.Format(time.DateOnly))
	}
	return nil
}

func checkConfig(kind, file string) (configChecked, error) {
	cfg, err := readConfig(file)
	if err != nil {
		return configChecked{}, err
	}
	if err := cfg.check(); err != nil {
		return configChecked{}, err
	}
	cred, err := cfg.credential()
	if err != nil {
		return configChecked{}, err
	}
	trust, err := cfg.trust()
	if err != nil {
		return configChecked{}, err
	}
	if _, err := trust.Verify(cred.ChainDER(), time.Now()); err != nil {
		return configChecked{}, fail(exitUsage, "", "own certificate %s: %w", cfg.path(cfg.Certificate), err)
	}
	if err := checkKind(kind, file, cfg, cred, trust); err != nil {
		return configChecked{}, err
	}
	return configChecked{File: file, Valid: true, Kind: kind, Agent: string(cred.ID), NotAfter: cred.Chain[0].NotAfter.UTC()}, nil
}

// checkKind checks the section of the kind.
func checkKind(kind, file string, cfg *config, cred *identity.Credential, trust *identity.Trust) error {
	switch kind {
	case "user":
		_, err := cfg.userRole(cred, trust)
		return err
	case "bank":
		return cfg.checkBank(file)
	}
	if cfg.Resource == nil {
		return fail(exitUsage, cfg.kindHint("resource", "write a section 'resource:'"), "configuration %s is not a resource's", file)
	}
	if drivers[cfg.Resource.Driver] == nil {
		return fail(exitUsage, "", "configuration %s: resource.driver %q: want %s", file, cfg.Resource.Driver, driverNames())
	}
	if _, err := cfg.launches(cred.ID, quiet()); err != nil {
		return err
	}
	if _, err := cfg.Resource.role(cred, 1, cfg.Heartbeat); err != nil {
		return err
	}
	switch cfg.Resource.Driver {
	case "swf":
		return cfg.checkSWF()
	case "local":
		return cfg.checkLocal()
	}
	return nil
}
