package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/workload"
)

// logReport is what is wrong and what is odd in a log.
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
	Line  int    `json:"line"` // 0: of the log as a whole
	Fault string `json:"fault"`
}

func newSWFValidate() *cobra.Command {
	most := 20
	c := &cobra.Command{
		Use: "validate FILE...", Short: "Tell what is wrong or odd in logs, line by line", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if most < 1 || most > workload.MaxFaults {
				return fail(exitUsage, "", "--most: %d, want 1..%d", most, workload.MaxFaults)
			}
			list, usable := []logReport{}, true
			for _, path := range args {
				r, err := validated(path, most)
				if err != nil {
					return err
				}
				list, usable = append(list, r), usable && r.Usable
			}
			if err := printReports(c, list); err != nil || usable {
				return err
			}
			return silent(exitUsage)
		},
	}
	c.Flags().IntVar(&most, "most", most, fmt.Sprintf("faults to tell one by one, 1..%d", workload.MaxFaults))
	return c
}

// validated is the report of a log with at most so many faults.
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

func printReports(c *cobra.Command, list []logReport) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), list)
	}
	for _, r := range list {
		r.print(stdout(c))
	}
	return nil
}

// print shows a report to a person.
func (r logReport) print(w io.Writer) {
	verdict := "usable"
	if !r.Usable {
		verdict = "not usable"
	}
	fmt.Fprintf(w, "%s: %s: %s on %s, %d ran\n", r.File, verdict, plural(r.Jobs, "job"), plural(r.Lines, "line"), r.Ran)
	for _, f := range r.Faults {
		fmt.Fprintln(w, "  fault: "+faultLine(r.File, workload.Fault{Line: f.Line, What: f.Fault}))
	}
	if r.More > 0 {
		fmt.Fprintf(w, "  and %s\n", plural(r.More, "more fault"))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  note: %s: %s\n", r.File, n.Note)
	}
}
