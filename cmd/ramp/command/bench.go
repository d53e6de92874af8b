package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newBench() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure auctions, settlement and files, each beside its baseline",
		Long: `Measures on this machine, with the same binary that serves; every figure stands
beside a baseline of the same run. docs/PERFORMANCE.md says what is measured and how.`,
	}
	c.AddCommand(newBenchAuction(), newBenchBank(), newBenchLedger(), newBenchStage(), newBenchBuyer())
	return c
}

// parseCounts reads a list such as 1,4,16 of positive numbers.
func parseCounts(flag, s string, most int) ([]int, error) {
	var list []int
	for _, f := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 || n > most {
			return nil, fail(exitUsage, "", "%s %q: want numbers in 1..%d with commas between", flag, s, most)
		}
		list = append(list, n)
	}
	return list, nil
}

// quantile is the value below which a share q of the sorted samples lies.
func quantile(samples []time.Duration, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	return float64(s[min(len(s)-1, int(q*float64(len(s))))].Microseconds()) / 1000
}

func millis(f float64) string { return fmt.Sprintf("%.2f", f) }
