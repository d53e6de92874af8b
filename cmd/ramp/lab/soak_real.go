package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/sim/real"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
)

// soakReal is one run of 'ramp soak-real'. docs/SOAK.md describes it.
type soakReal struct {
	minutes          float64
	resources, users int
	every            time.Duration
	seed             uint64
	dir              string
	compare          string
}

func NewSoakReal() *cobra.Command {
	var s soakReal
	c := &cobra.Command{
		Use: "soak-real", Hidden: true, // for developers; it needs root
		Short: "Break a market of real processes for a while, and compare everybody's books",
		Long: `Run one bank, resources and users, each a process with its own key, journal, disk and network
namespace behind a WAN of 20 to 75 ms one way and 1 % loss. For some minutes users buy while
processes are killed and stopped, links are cut and disks are full. Then the faults stop,
everything gets a stated time to finish, and the bank, all journals and all batch systems are
compared. It needs root, /dev/net/tun, loop devices and mkfs.ext4. The seed determines the
faults, not their outcome.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.compare != "" {
				return s.again(c)
			}
			return s.run(c.Context(), c)
		},
	}
	c.Flags().Float64Var(&s.minutes, "minutes", 15, "minutes of faults")
	c.Flags().IntVar(&s.resources, "resources", 10, "resource agents")
	c.Flags().IntVar(&s.users, "users", 5, "user agents")
	cli.DurationVar(c.Flags(), &s.every, "every", 2*time.Second, "mean time between faults")
	c.Flags().Uint64Var(&s.seed, "seed", 1, "seed of the faults and the requests")
	c.Flags().StringVar(&s.dir, "dir", "", "keep all state in the empty `DIR` (default: a temporary one, kept if something is wrong)")
	c.Flags().StringVar(&s.compare, "compare", "", "run nothing; compare the books of an earlier run in `DIR`")
	return c
}

func (s *soakReal) run(ctx context.Context, c *cobra.Command) error {
	if err := real.Available(); err != nil {
		return exit.Fail(exit.Usage, "run it as root on a Linux with TUN devices", "soak-real: %w", err)
	}
	if err := real.OwnMounts(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	temporary := s.dir == ""
	if err := s.makeDir(); err != nil {
		return err
	}
	cfg := real.Config{
		Program: program, Dir: s.dir, Resources: s.resources, Users: s.users, Length: time.Duration(s.minutes * float64(time.Minute)),
		Every: s.every, Seed: s.seed,
	}
	if err := cfg.Validate(); err != nil {
		return exit.Fail(exit.Usage, "see 'ramp soak-real --help'", "%w", err)
	}
	show := &soakProgress{Progress: *cli.NewProgress(cli.Stderr(c))}
	show.say("seed %d: 1 bank, %d resources, %d users; %s with a fault every %s; state in %s", s.seed, s.resources, s.users, cfg.Length, s.every, s.dir)
	cfg.Tell = show.status
	result, err := real.Run(ctx, cfg)
	show.End()
	if err != nil {
		return exit.Fail(exit.Failed, "its state is in "+s.dir, "soak-real: %w", err)
	}
	if temporary && len(result.Violations) == 0 {
		err = os.RemoveAll(s.dir)
	}
	return errors.Join(err, s.print(c, result))
}

func (s *soakReal) makeDir() (err error) {
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "ramp-soak-")
		return err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	return os.MkdirAll(s.dir, 0o700)
}

// print prints the result; violations end the program with 1.
func (s *soakReal) print(c *cobra.Command, r real.Result) error {
	err := cli.Show(c, r, func(w io.Writer) {
		if r.Interrupted {
			fmt.Fprintln(w, "interrupted: the faults stopped early")
		}
		fmt.Fprintf(w, "%.1f minutes with faults: %s\n", r.Minutes, faultWords(r.Faults))
		fmt.Fprintf(w, "%d purchases: %d settled, %d void, %d failed; all decided %.0f s after the last fault\n",
			r.Purchases, r.Settled, r.Void, r.Failed, r.HealSeconds)
	})
	if err != nil {
		return err
	}
	return s.verdict(c, r.Violations)
}

func (s *soakReal) verdict(c *cobra.Command, violations []string) error {
	if !cli.WantsJSON(c) {
		for _, v := range violations {
			fmt.Fprintln(cli.Stdout(c), v)
		}
		fmt.Fprintf(cli.Stdout(c), "%s\n", words.Plural(len(violations), "difference"))
	}
	if len(violations) > 0 {
		return exit.Fail(exit.Failed, "the books are in "+filepath.Join(s.dir, "books")+", the logs in "+filepath.Join(s.dir, "logs"),
			"%s between the books: something was lost or left half done", words.Plural(len(violations), "difference"))
	}
	return nil
}

// again compares the books of an earlier run.
func (s *soakReal) again(c *cobra.Command) error {
	s.dir = s.compare
	r, err := real.Compare(s.compare)
	if err != nil {
		return exit.Fail(exit.Usage, "give the directory of a run that has ended", "soak-real: %w", err)
	}
	if cli.WantsJSON(c) {
		if r.Differences == nil {
			r.Differences = []string{}
		}
		err = cli.PrintJSON(cli.Stdout(c), map[string]any{
			"purchases": r.Purchases, "settled": r.Settled, "void": r.Void, "failed": r.Failed, "violations": r.Differences,
		})
	}
	return errors.Join(err, s.verdict(c, r.Differences))
}

// faultWords are the faults by kind, in order of name.
func faultWords(faults map[real.Kind]int) string {
	words := []string{}
	for _, k := range slices.Sorted(maps.Keys(faults)) {
		words = append(words, fmt.Sprintf("%s %d", strings.ReplaceAll(string(k), "_", " "), faults[k]))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// soakProgress shows the progress of a soak: on a terminal by a line that is rewritten every second,
// elsewhere by a line twice a minute and for every new phase.
type soakProgress struct {
	cli.Progress
	phase string
	since int // seconds since the last plain line
}

const soakLine = 30 // seconds between plain lines

func (p *soakProgress) say(format string, args ...any) { fmt.Fprintf(p.W, format+"\n", args...) }

func (p *soakProgress) status(s real.Status) {
	p.since++
	if !p.Live && s.Phase == p.phase && p.since < soakLine {
		return
	}
	p.phase, p.since = s.Phase, 0
	text := fmt.Sprintf("%s, %s left: %d purchases begun, %d settled; %d faults now; so far %s",
		s.Phase, s.Left.Round(time.Second), s.Ordered, s.Settled, s.Broken, faultWords(s.Faults))
	if p.Live {
		p.Line(text)
		return
	}
	p.say("%s", text)
}
