package command

import "github.com/spf13/cobra"

func newBenchBank() *cobra.Command { return &cobra.Command{Use: "bank"} }
