package formats

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/workload"
	"ramp/cmd/ramp/cli"
)

type logInfo struct {
	File         string  `json:"file"`
	Computer     string  `json:"computer,omitempty"`
	Installation string  `json:"installation,omitempty"`
	Jobs         int     `json:"jobs"`
	Ran          int     `json:"ran"`
	Users        int     `json:"users"`
	Cores        int     `json:"cores"`
	CoresTold    bool    `json:"cores_told"` // the header states the cores
	UnixStart    int64   `json:"unix_start_s,omitempty"`
	First        int64   `json:"first_start_s"`
	Last         int64   `json:"last_end_s"`
	Months       float64 `json:"months"` // from second 0 if its date is known
	MeanLoad     float64 `json:"mean_load"`
	Peak         int     `json:"peak_cores"`
	BusyFrom     int64   `json:"first_busy_week_s"` // -1: none

	Serial float64         `json:"serial_share"`
	Pow2   float64         `json:"power_of_two_share"`
	Size   workload.Spread `json:"cores_of_jobs"`
	Run    workload.Spread `json:"run_s"`
	Wait   workload.Spread `json:"wait_s"`
	Asked  workload.Spread `json:"requested_s"`

	Notes []logNote  `json:"notes"`
	At    []logState `json:"at,omitempty"`
}

// logNote is an oddity of a log, and how it is handled.
type logNote struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Line  int    `json:"line"` // the first; 0: the log as a whole
	Note  string `json:"note"`
}

type logState struct {
	Second  int64   `json:"second"`
	Running int     `json:"running"`
	Busy    int     `json:"busy_cores"`
	Load    float64 `json:"load"`
	Waiting int     `json:"waiting"`
	Queued  int     `json:"queued_cores"`
	Week    float64 `json:"week_load"` // mean of the week from there on, as recorded
}

func newSWFInfo() *cobra.Command {
	var at []int64
	c := &cobra.Command{
		Use: "info FILE...", Short: "Show how long, how large and how busy logs are", Args: cobra.MinimumNArgs(1),
		Long: `Show how long, how large and how busy logs are, and what their jobs are like: shares of one core
and of powers of two; cores, run times, waits and requested times as median and mean. Oddities
go to stderr with their line and how they are treated; docs/WORKLOADS.md has the rules.`,
		Example: "  ramp swf info log.swf.gz",
		RunE: func(c *cobra.Command, args []string) error {
			list := []logInfo{}
			for _, path := range args {
				i, err := infoOf(path, at)
				if err != nil {
					return err
				}
				list = append(list, i)
			}
			return cli.Show(c, list, func(w io.Writer) { printInfo(w, cli.Stderr(c), list) })
		},
	}
	c.Flags().Int64SliceVar(&at, "at", nil, "also show the machine at second `S` of the log; repeatable")
	return c
}

func infoOf(path string, at []int64) (logInfo, error) {
	l, r, err := readLog(path)
	if err != nil {
		return logInfo{}, err
	}
	s, h := workload.Summarise(l), l.Headers()
	from := s.First
	if s.UnixStart > 0 {
		from = 0
	}
	i := logInfo{
		File: path, Computer: h.Computer, Installation: h.Installation,
		Jobs: s.Jobs, Ran: s.Ran, Users: s.Users, Cores: s.Cores, CoresTold: s.CoresTold,
		UnixStart: s.UnixStart, First: s.First, Last: s.Last, Months: float64(s.Last-from) / month,
		MeanLoad: s.Load, Peak: s.Peak, BusyFrom: s.BusyFrom, Serial: s.Serial, Pow2: s.Pow2,
		Size: s.Size, Run: s.Run, Wait: s.Wait, Asked: s.Asked, Notes: logNotes(r), At: logStates(l, at),
	}
	return i, nil
}

// month is a twelfth of a year, in seconds.
const month = 365.2425 * 86400 / 12

func logNotes(r workload.Report) []logNote {
	list := []logNote{}
	for _, n := range r.Notes {
		list = append(list, logNote{string(n.Kind), n.Count, n.Line, n.String()})
	}
	return list
}

// logStates are the states of a log's machine at some seconds.
func logStates(l *workload.Log, at []int64) []logState {
	if len(at) == 0 {
		return nil
	}
	replay, view := workload.NewReplay(l), workload.NewView(l)
	var list []logState
	for _, t := range at {
		m := replay.Machine(t)
		s := m.Snapshot()
		state := logState{Second: t, Running: len(s.Running), Waiting: len(s.Waiting), Week: view.Load(t, t+workload.Week)}
		for _, j := range s.Running {
			state.Busy += j.Cores
		}
		for _, j := range s.Waiting {
			state.Queued += j.Cores
		}
		state.Load = float64(state.Busy) / float64(m.Capacity())
		list = append(list, state)
	}
	return list
}

// printInfo prints what logs cover and what their jobs are like, and their oddities to errors.
func printInfo(w, errors io.Writer, list []logInfo) {
	logs := [][]string{{"log", "jobs", "cores", "from", "to", "months", "days", "mean load", "first busy week"}}
	jobs := [][]string{{"log", "ran", "users", "1 core", "2, 4, 8 …", "cores (median, mean)", "run", "wait", "asked for"}}
	states := [][]string{{"log", "second", "running", "busy cores", "load", "waiting", "queued cores", "load of the week"}}
	for _, i := range list {
		logs = append(logs, i.span())
		jobs = append(jobs, []string{
			i.File, fmt.Sprint(i.Ran), fmt.Sprint(i.Users), percent(i.Serial), percent(i.Pow2),
			fmt.Sprintf("%d, %.1f", i.Size.Median, i.Size.Mean), spreadTime(i.Run), spreadTime(i.Wait), spreadTime(i.Asked),
		})
		for _, s := range i.At {
			states = append(states, []string{
				i.File, fmt.Sprint(s.Second), fmt.Sprint(s.Running), fmt.Sprint(s.Busy), fmt.Sprintf("%.2f", s.Load),
				fmt.Sprint(s.Waiting), fmt.Sprint(s.Queued), fmt.Sprintf("%.2f", s.Week),
			})
		}
	}
	cli.Table(w, logs...)
	fmt.Fprintln(w)
	cli.Table(w, jobs...)
	if len(states) > 1 {
		fmt.Fprintln(w)
		cli.Table(w, states...)
	}
	for _, i := range list {
		for _, n := range i.Notes {
			fmt.Fprintf(errors, "note: %s: %s\n", i.File, n.Note)
		}
	}
}

// span is a log's row in the first table.
func (i logInfo) span() []string {
	from, to, busy := "-", "-", "none"
	if i.UnixStart > 0 {
		from, to = monthOf(i.UnixStart), monthOf(i.UnixStart+i.Last)
	}
	if i.BusyFrom >= 0 {
		busy = fmt.Sprintf("second %d", i.BusyFrom)
	}
	return []string{
		i.File, fmt.Sprint(i.Jobs), fmt.Sprint(i.Cores), from, to, fmt.Sprintf("%.1f", i.Months),
		fmt.Sprintf("%.1f", float64(i.Last-i.First)/86400), fmt.Sprintf("%.2f", i.MeanLoad), busy,
	}
}

func monthOf(unix int64) string { return time.Unix(unix, 0).UTC().Format("Jan 2006") }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// spreadTime is the median and the mean of durations.
func spreadTime(s workload.Spread) string {
	if s.Known == 0 {
		return "-"
	}
	return fmt.Sprintf("%v, %v", seconds(s.Median), seconds(int64(s.Mean)))
}

func seconds(s int64) time.Duration { return time.Duration(s) * time.Second }
