package resource

import (
	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/queue/local"
)

func NewKeepJob() *cobra.Command {
	return &cobra.Command{
		Use: config.KeepJob + " DIR", Short: "Run the job of a directory (for the local driver)", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return local.Keep(args[0]) },
	}
}
