package formats

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/resource/forecast"
	"ramp/cmd/ramp/cli"
)

func newSWFForecast() *cobra.Command {
	level := forecast.Usual()
	c := &cobra.Command{
		Use: "forecast FILE...", Short: "Test how often learnt bounds on waiting times would have held", Args: cobra.MinimumNArgs(1),
		Long: `Replay the waiting times of logs: each submitted job gets the upper bound that holds at that
moment, and each started job teaches its wait. Prints, by number of cores and in total, how many
bounds were given and how many held, how many jobs came before there was a bound, and how often
the past was dropped because waits had changed. docs/FORECAST.md describes the method.`,
		Example: "  ramp swf forecast log.swf.gz",
		RunE:    func(c *cobra.Command, args []string) error { return forecastLogs(c, args, level) },
	}
	f := c.Flags()
	f.Float64Var(&level.Quantile, "quantile", level.Quantile, "share of the waits that a bound covers, between 0 and 1")
	f.Float64Var(&level.Confidence, "confidence", level.Confidence, "probability that it covers them, between 0 and 1")
	return c
}

// forecastReport is how often the predicted bounds of a log held.
type forecastReport struct {
	File       string          `json:"file"`
	Jobs       int             `json:"jobs"`          // jobs with a recorded wait
	Unknown    int             `json:"waits_unknown"` // jobs that ran without a recorded wait
	Quantile   float64         `json:"quantile"`
	Confidence float64         `json:"confidence"`
	Clusters   []forecastTally `json:"clusters"`
	All        forecastTally   `json:"all"`
}

// forecastTally is a class of jobs; Rate is nil if no bound was predicted.
type forecastTally struct {
	Cores string `json:"cores"`
	forecast.Tally
	Rate *float64 `json:"rate"`
}

func forecastLogs(c *cobra.Command, paths []string, level forecast.Level) error {
	if err := level.Validate(); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	list := []forecastReport{}
	for _, path := range paths {
		l, _, err := readLog(path)
		if err != nil {
			return err
		}
		list = append(list, reportForecast(path, forecast.Replay(l, level), level))
	}
	return cli.ShowTable(c, list, forecastRows(list))
}

func reportForecast(path string, r forecast.Replayed, level forecast.Level) forecastReport {
	out := forecastReport{
		File: path, Jobs: r.Jobs, Unknown: r.Unknown, Quantile: level.Quantile, Confidence: level.Confidence,
		All: tallied("all", r.All()),
	}
	for i, t := range r.Clusters {
		out.Clusters = append(out.Clusters, tallied(forecast.ClusterName(i), t))
	}
	return out
}

func tallied(cores string, t forecast.Tally) forecastTally {
	out := forecastTally{Cores: cores, Tally: t}
	if rate, ok := t.Rate(); ok {
		out.Rate = &rate
	}
	return out
}

func forecastRows(list []forecastReport) [][]string {
	rows := [][]string{{"file", "cores", "bounds", "held", "rate", "no bound", "changes"}}
	for _, r := range list {
		if r.Jobs == 0 {
			rows = append(rows, []string{r.File, fmt.Sprintf("none: the waits of %d jobs are not recorded", r.Unknown)})
			continue
		}
		for _, t := range append(r.Clusters, r.All) {
			rate := "-"
			if t.Rate != nil {
				rate = fmt.Sprintf("%.4f", *t.Rate)
			}
			rows = append(rows, []string{r.File, t.Cores, fmt.Sprint(t.Told), fmt.Sprint(t.Held), rate, fmt.Sprint(t.Untold), fmt.Sprint(t.Changes)})
		}
	}
	return rows
}
