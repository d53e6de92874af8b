package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/resource/forecast"
)

func newSWFForecast() *cobra.Command {
	level := forecast.Usual()
	c := &cobra.Command{
		Use: "forecast FILE...", Short: "Say how often bounds on waits, learnt as a log goes on, would have held", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return forecastLogs(c, args, level) },
	}
	f := c.Flags()
	f.Float64Var(&level.Quantile, "quantile", level.Quantile, "share of the waits that a bound is to cover")
	f.Float64Var(&level.Confidence, "confidence", level.Confidence, "probability that it covers them")
	return c
}

// forecastReport is how the bounds of a log have held.
type forecastReport struct {
	File       string          `json:"file"`
	Jobs       int             `json:"jobs"`          // that started and whose wait is told
	Unknown    int             `json:"waits_unknown"` // that ran, but whose wait is not told
	Quantile   float64         `json:"quantile"`
	Confidence float64         `json:"confidence"`
	Clusters   []forecastTally `json:"clusters"`
	All        forecastTally   `json:"all"`
}

// forecastTally is a class of jobs; without a rate no bound was told.
type forecastTally struct {
	Cores string `json:"cores"`
	forecast.Tally
	Rate *float64 `json:"rate"`
}

func forecastLogs(c *cobra.Command, paths []string, level forecast.Level) error {
	if err := level.Validate(); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	list := []forecastReport{}
	for _, path := range paths {
		l, _, err := readLog(path)
		if err != nil {
			return err
		}
		list = append(list, reportForecast(path, forecast.Replay(l, level), level))
	}
	if wantsJSON(c) {
		return printJSON(stdout(c), list)
	}
	table(stdout(c), forecastRows(list)...)
	return nil
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
	rows := [][]string{{"file", "cores", "bounds told", "held", "rate", "not told", "changes"}}
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
