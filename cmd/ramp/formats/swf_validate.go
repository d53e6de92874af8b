package formats

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/agents/workload"
	"ramp/cmd/ramp/cli"
)

// logReport lists the faults and oddities of a log.
type logReport struct {
	File   string     `json:"file"`
	Usable bool       `json:"usable"`
	Lines  int        `json:"lines"`
	Jobs   int        `json:"jobs"`
	Ran    int        `json:"ran"`
	Faults []logFault `json:"faults"`
	More   int        `json:"more_faults"`
	Notes  []logNote  `json:"notes"`
}

type logFault struct {
	Line  int    `json:"line"` // 0: the log as a whole
	Fault string `json:"fault"`
}

func newSWFValidate() *cobra.Command {
	most := 20
	c := &cobra.Command{
		Use: "validate FILE...", Short: "List errors and oddities of logs, line by line", Args: cobra.MinimumNArgs(1),
		Long:    "List errors and oddities of logs, line by line. Ends with 2 if a log is not usable.",
		Example: "  ramp swf validate log.swf.gz",
		RunE: func(c *cobra.Command, args []string) error {
			if most < 1 || most > workload.MaxFaults {
				return exit.Fail(exit.Usage, "", "--most %d: want 1..%d", most, workload.MaxFaults)
			}
			list, usable := []logReport{}, true
			for _, path := range args {
				r, err := validated(path, most)
				if err != nil {
					return err
				}
				list, usable = append(list, r), usable && r.Usable
			}
			err := cli.Show(c, list, func(w io.Writer) {
				for _, r := range list {
					r.print(w)
				}
			})
			if err != nil || usable {
				return err
			}
			return exit.Silent(exit.Usage)
		},
	}
	c.Flags().IntVar(&most, "most", most, fmt.Sprintf("list at most this many errors, 1..%d; the others are counted", workload.MaxFaults))
	return c
}

// validated is the report of a log, with at most this many faults.
func validated(path string, most int) (logReport, error) {
	_, r, err := examineLog(path)
	if err != nil {
		return logReport{}, err
	}
	v := logReport{
		File: path, Usable: r.Usable(), Lines: r.Lines, Jobs: r.Jobs, Ran: r.Ran,
		Faults: []logFault{}, More: r.More + max(len(r.Faults)-most, 0), Notes: logNotes(r),
	}
	for _, f := range r.Faults[:min(len(r.Faults), most)] {
		v.Faults = append(v.Faults, logFault{f.Line, f.What})
	}
	return v, nil
}

func (r logReport) print(w io.Writer) {
	verdict := "usable"
	if !r.Usable {
		verdict = "not usable"
	}
	fmt.Fprintf(w, "%s: %s: %s on %s, %d ran\n", r.File, verdict, words.Plural(r.Jobs, "job"), words.Plural(r.Lines, "line"), r.Ran)
	for _, f := range r.Faults {
		fmt.Fprintln(w, "  fault: "+faultLine(r.File, workload.Fault{Line: f.Line, What: f.Fault}))
	}
	if r.More > 0 {
		fmt.Fprintf(w, "  and %s\n", words.Plural(r.More, "more fault"))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  note: %s: %s\n", r.File, n.Note)
	}
}
