package lab

import (
	"github.com/spf13/cobra"
)

func NewBench() *cobra.Command {
	c := &cobra.Command{
		Use: "bench", Short: "Measure auctions, clearing, settlement, the mesh, files, sweeps, federations, pages and abuse", GroupID: "measure",
		Long: `Measure on this machine, with the same program that serves, and next to a baseline from the same
run. docs/PERFORMANCE.md describes what is measured and how.`,
	}
	c.AddCommand(newBenchAbuse(), newBenchAll(), newBenchAuction(), newBenchBank(), newBenchClearing(), newBenchEnglish(), newBenchLedger(), newBenchMesh(), newBenchStage(), newBenchSweep(), newBenchWeb(), newBenchBuyer(), newBenchCrowd())
	return c
}
