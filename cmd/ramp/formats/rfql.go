// Package formats has the commands that read, check, convert and make the documents of
// the market: RFQL requests, FIPA-ACL messages and workload logs.
package formats

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/rfql"
)

func NewRFQL() *cobra.Command {
	c := &cobra.Command{
		Use: "rfql", Short: "Write, check and show requests for quotation", GroupID: "formats",
		Long: `A request for quotation is an XML document in the Request for Quotation Language. docs/RFQL.md
describes its terms.`,
	}
	cli.Add(c, newRFQLNew(), newRFQLValidate(), newRFQLShow())
	return c
}

func newRFQLValidate() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE", SuggestFor: []string{"check"}, Short: "Check whether a document could be bought now", Args: cobra.ExactArgs(1),
		Long: `Check whether the document FILE ('-': standard input) could be bought now. Prints one line per
error, with its line number and the allowed values, and then ends with 2.`,
		Example: "  ramp rfql validate job.xml",
		RunE: func(c *cobra.Command, args []string) error {
			b, err := words.ReadInput(c.Context(), c.InOrStdin(), args[0], protocol.MaxDocument)
			if err != nil {
				return err
			}
			doc, err := rfql.Parse(b, time.Now())
			if err != nil {
				var faults rfql.Faults
				if errors.As(err, &faults) && cli.WantsJSON(c) {
					if err := cli.PrintJSON(cli.Stdout(c), map[string]any{"file": args[0], "valid": false, "faults": faults}); err != nil {
						return err
					}
					return exit.Silent(exit.Usage)
				}
				return order.DocumentError(args[0], err)
			}
			return cli.ShowLine(c, map[string]any{"file": args[0], "valid": true, "requests": doc.Len()}, "%s: valid, %s", args[0], words.Plural(doc.Len(), "request"))
		},
	}
}

// shownRequest is a request in JSON; the names of its fields end in their units.
type shownRequest struct {
	Unit        int              `json:"unit"`
	Name        string           `json:"name,omitempty"`
	Application string           `json:"application,omitempty"`
	Price       protocol.Credits `json:"price_core_hour,omitempty"`
	Start       time.Time        `json:"start,omitzero"`
	End         time.Time        `json:"end"`
	WallMinutes float64          `json:"wall_minutes,omitempty"`
	Cores       int              `json:"cores"`
	NodeCount   int              `json:"node_count,omitempty"`
	NodeCores   int              `json:"node_cores,omitempty"`
	OS          string           `json:"os,omitempty"`
	OSVersion   string           `json:"os_version,omitempty"`
	Arch        string           `json:"architecture,omitempty"`
	CPUSpeed    int              `json:"cpu_speed_mhz,omitempty"`
	Bandwidth   int              `json:"bandwidth_mbits,omitempty"`
	RAMPerCore  int              `json:"ram_per_core_mb,omitempty"`
	TotalDisk   int              `json:"total_disk_gb,omitempty"`
	NodeDisk    int              `json:"node_disk_gb,omitempty"`
	Contract    *shownContract   `json:"contract,omitempty"`
}

type shownDocument struct {
	File      string         `json:"file"`
	Objective string         `json:"optimize,omitempty"`
	SameStart bool           `json:"same_start,omitempty"`
	Requests  []shownRequest `json:"requests"`
	Warnings  rfql.Faults    `json:"warnings"`
}

func newRFQLShow() *cobra.Command {
	return &cobra.Command{
		Use: "show FILE", Short: "Show what a document asks for", Args: cobra.ExactArgs(1),
		Long: `Show what the document FILE ('-': standard input) asks for. Errors of meaning, such as an end in
the past, are only warnings here.`,
		Example: "  ramp rfql show job.xml",
		RunE: func(c *cobra.Command, args []string) error {
			b, err := words.ReadInput(c.Context(), c.InOrStdin(), args[0], protocol.MaxDocument)
			if err != nil {
				return err
			}
			draft, warnings, err := rfql.Read(b)
			if err != nil {
				return order.DocumentError(args[0], err)
			}
			warnings = append(warnings.Of(rfql.Notice), meanings(draft)...)
			slices.SortStableFunc(warnings, func(x, y rfql.Fault) int { return cmp.Compare(x.Line, y.Line) })
			return showDraft(c, args[0], draft, warnings)
		},
	}
}

// meanings are the faults of meaning that a document has now. They include those that do not depend
// on the time.
func meanings(d rfql.Draft) rfql.Faults {
	var faults rfql.Faults
	_, err := rfql.Check(d, time.Now())
	errors.As(err, &faults)
	return faults
}

func showDraft(c *cobra.Command, path string, d rfql.Draft, warnings rfql.Faults) error {
	list := make([]shownRequest, len(d.Requests))
	for i, r := range d.Requests {
		list[i] = shownRequest{
			Unit: i, Name: r.Name, Application: r.Application, Price: r.Price, Start: r.NotBefore, End: r.End,
			WallMinutes: r.Wall.Minutes(), Cores: r.TotalCores, NodeCount: r.NodeCount, NodeCores: r.NodeCores,
			OS: r.OS, OSVersion: r.OSVersion, Arch: r.Arch, CPUSpeed: r.CPUSpeed, Bandwidth: r.Bandwidth,
			RAMPerCore: r.RAMPerCore, TotalDisk: r.TotalDisk, NodeDisk: r.NodeDisk, Contract: showContract(r.Contract),
		}
		if r.TotalCores == 0 {
			list[i].Cores = r.NodeCount * r.NodeCores
		}
	}
	shown := shownDocument{File: path, Objective: objectiveWord(d.Objective), SameStart: d.SameStart, Requests: list, Warnings: append(rfql.Faults{}, warnings...)}
	return cli.Show(c, shown, func(w io.Writer) {
		for _, f := range warnings {
			fmt.Fprintln(cli.Stderr(c), "warning: "+f.In(path))
		}
		for _, r := range list {
			rows := requestRows(r)
			if shown.Objective != "" && r.Unit == 0 {
				rows = append([][]string{{"optimize", shown.Objective}}, rows...)
			}
			cli.Table(w, rows...)
		}
		if shown.SameStart {
			fmt.Fprintln(w, "all units begin at the same second")
		}
	})
}

// objectiveWord is the objective of a document, or empty.
func objectiveWord(o protocol.Objective) string {
	if o == 0 {
		return ""
	}
	return o.String()
}

// requestRows are the given terms of a request, one per row.
func requestRows(r shownRequest) [][]string {
	price := r.Price.String() + " per core-hour"
	if r.Price == 0 {
		price = "the highest list price"
	}
	rows := [][]string{
		{fmt.Sprintf("request %d", r.Unit+1), r.Name},
		{"price at most", price},
		{"cores", coresWords(r)},
		{"start", startWords(r.Start)},
		{"end at the latest", words.Moment(r.End)},
	}
	add := func(name, value string, given bool) {
		if given {
			rows = append(rows, []string{name, value})
		}
	}
	add("wall time", fmt.Sprintf("%g min", r.WallMinutes), r.WallMinutes > 0)
	add("operating system", strings.TrimSpace(r.OS+" "+r.OSVersion), r.OS+r.OSVersion != "")
	add("architecture", r.Arch, r.Arch != "")
	add("CPU speed", fmt.Sprintf("at least %d MHz", r.CPUSpeed), r.CPUSpeed > 0)
	add("bandwidth", fmt.Sprintf("at least %d Mbit/s between nodes", r.Bandwidth), r.Bandwidth > 0)
	add("memory", fmt.Sprintf("at least %d MB per core", r.RAMPerCore), r.RAMPerCore > 0)
	add("disk", fmt.Sprintf("at least %d GB", r.TotalDisk), r.TotalDisk > 0)
	add("disk", fmt.Sprintf("at least %d GB per node", r.NodeDisk), r.NodeDisk > 0)
	add("application", r.Application, r.Application != "")
	return append(rows, r.Contract.rows()...)
}

func coresWords(r shownRequest) string {
	if r.NodeCount > 0 {
		return fmt.Sprintf("%d (%d nodes of %d)", r.Cores, r.NodeCount, r.NodeCores)
	}
	return fmt.Sprint(r.Cores)
}

func startWords(t time.Time) string {
	if t.IsZero() {
		return "at once"
	}
	return "from " + words.Moment(t)
}

func newRFQLNew() *cobra.Command {
	var q cli.RequestFlags
	var optimize string
	c := &cobra.Command{
		Use: "new --cores N --wall D --within D", Short: "Print the document that the flags of 'ramp user buy' produce", Args: cobra.NoArgs,
		Long: `Print an RFQL document that asks for what the flags describe.

` + cli.RequestHelp,
		Example: "  ramp rfql new --cores 256 --wall 2h --within 12h > job.xml",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := cli.ParseOptimize(optimize)
			if err != nil {
				return err
			}
			doc, err := q.Document(o)
			if err != nil {
				return err
			}
			if cli.WantsJSON(c) {
				return showDraft(c, "flags", doc.Draft(), nil)
			}
			_, err = cli.Stdout(c).Write(doc.XML())
			return err
		},
	}
	q.Register(c)

	c.Flags().StringVar(&optimize, "optimize", "", "optimize for `GOAL`: cost, time or cost-time")
	cli.Optimize(c)
	return c
}

// shownContract is a contract in JSON: rates in cores, prices in credits.
type shownContract struct {
	Limit  float64          `json:"time_limit_minutes,omitempty"`
	P      protocol.Credits `json:"p_per_core_hour"`
	RMin   protocol.Credits `json:"rmin"` // millionths of a core, as credits have micro-credits
	RMax   protocol.Credits `json:"rmax"`
	Q      protocol.Credits `json:"q_per_hour"`
	SMin   protocol.Credits `json:"smin"`
	SMax   protocol.Credits `json:"smax"`
	Prepay bool             `json:"prepay"`
}

// showContract is nil for a request without a contract.
func showContract(c rfql.Contract) *shownContract {
	if c == (rfql.Contract{}) {
		return nil
	}
	return &shownContract{
		Limit: c.TimeLimit.Minutes(), P: c.P.Top, RMin: protocol.Credits(c.P.Lo), RMax: protocol.Credits(c.P.Hi),
		Q: c.Q.Top, SMin: protocol.Credits(c.Q.Lo), SMax: protocol.Credits(c.Q.Hi), Prepay: c.Prepay,
	}
}

func (s *shownContract) rows() [][]string {
	if s == nil {
		return nil
	}
	rows := [][]string{{"metered", fmt.Sprintf("P %s per core-hour used from %s to %s cores", s.P, s.RMin, s.RMax)}}
	if s.Q > 0 {
		rows = append(rows, []string{"", fmt.Sprintf("Q %s per hour from a least share of %s to %s cores", s.Q, s.SMin, s.SMax)})
	}
	if s.Limit > 0 {
		rows = append(rows, []string{"time limit", fmt.Sprintf("%g min", s.Limit)})
	}
	if s.Prepay {
		rows = append(rows, []string{"prepaid", "the ceiling; the job stops when it is used up"})
	}
	return rows
}
