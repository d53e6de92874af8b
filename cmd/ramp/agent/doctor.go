package agent

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/doctor"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

func NewDoctor() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "doctor", Short: "Diagnose the agents of this machine, and suggest remedies", Args: cobra.NoArgs, GroupID: "start",
		Long: `Check every agent of this machine: its directory, configuration, certificate and revocation
lists, free disk space, its daemon, socket and journal, the addresses it listens on and joins
by, its clock against those of the agents it reaches, a site's batch system and federation, and
for a bank whether it is in recovery or its clock was set back. It changes nothing; with Slurm
it makes and deletes a trial reservation. It checks --dir, else $RAMP_DIR, else the default
directories. Each finding is good, a warning or bad. Ends with 1 if one is bad.`,
		Example: "  ramp doctor\n  ramp doctor --dir site",
		RunE: func(c *cobra.Command, _ []string) error {
			dirs, err := agentDirs(dir)
			if err != nil {
				return err
			}
			list := make([]doctor.Diagnosis, 0, len(dirs))
			for _, d := range dirs {
				list = append(list, doctor.Examine(c.Context(), d))
			}
			return printDiagnoses(c, list)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "`DIR` of an agent (default: $RAMP_DIR, or all in their default places)")
	return c
}

// printDiagnoses prints the results, and ends with 1 if one is bad.
func printDiagnoses(c *cobra.Command, list []doctor.Diagnosis) error {
	bad := false
	for _, d := range list {
		for _, f := range d.Findings {
			bad = bad || f.State == doctor.Bad
		}
	}
	err := cli.Show(c, list, func(w io.Writer) {
		for _, d := range list {
			fmt.Fprintln(w, d.Dir)
			cli.Table(w, rowsOf(d)...)
		}
	})
	if err == nil && bad {
		return exit.Silent(exit.Failed)
	}
	return err
}

func rowsOf(d doctor.Diagnosis) [][]string {
	var rows [][]string
	for _, f := range d.Findings {
		rows = append(rows, []string{f.Check, f.State, f.Found})
		if f.Do != "" {
			rows = append(rows, []string{"", "", "-> " + f.Do})
		}
	}
	return rows
}
