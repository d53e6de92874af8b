package order

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol/message"
)

// After is a job that must have ended before another is bought.
type After struct {
	Job string // ID, beginning of an ID, or name
	OK  bool   // with 0
}

// maxAfter bounds the jobs that one waits for.
const maxAfter = 100

// ParseAfter reads afterok:NAME and afterany:NAME, with commas between.
func ParseAfter(list []string) ([]After, error) {
	var all []After
	for _, s := range list {
		for part := range strings.SplitSeq(s, ",") {
			kind, job, _ := strings.Cut(part, ":")
			if job == "" || kind != "afterok" && kind != "afterany" {
				return nil, exit.Fail(exit.Usage, "", "--dependency %q: want afterok:NAME or afterany:NAME, with commas between", part)
			}
			for name := range strings.SplitSeq(job, ":") {
				all = append(all, After{name, kind == "afterok"})
			}
		}
	}
	if len(all) > maxAfter {
		return nil, exit.Fail(exit.Usage, "", "--dependency: %d jobs, want at most %d", len(all), maxAfter)
	}
	return all, nil
}

// jobs are the jobs of an agent, newest last.
type jobs struct {
	purchases []message.Purchase
	runs      map[string]message.Run
}

func askJobs(ctx context.Context, agent *control.Client) (jobs, error) {
	j := jobs{runs: map[string]message.Run{}}
	if err := control.Purchases.Ask(ctx, agent, control.LastCall{}, &j.purchases); err != nil {
		return j, err
	}
	var runs []message.Run
	err := control.Runs.Ask(ctx, agent, control.LastCall{}, &runs)
	for _, r := range runs {
		j.runs[r.ID] = r
		if r.Federation { // nothing was bought for it
			j.purchases = append(j.purchases, message.Purchase{ID: r.ID, RFQ: r.Name, Created: r.Created})
		}
	}
	slices.SortStableFunc(j.purchases, func(a, b message.Purchase) int { return a.Created.Compare(b.Created) })
	return j, err
}

// state is how a job stands: whether it is over, and how it ended, for people.
func (j jobs) state(p message.Purchase) (over, ok bool, how string) {
	run, runs := j.runs[p.ID]
	switch {
	case runs && run.Over:
		return true, run.Exit == 0, fmt.Sprintf("ended with %d", run.Exit)
	case runs:
		return false, false, "is " + run.State
	case user.Undecided(p.State):
		return false, false, "is being bought"
	}
	return true, false, "has not run: its purchase is " + p.State
}

// named are the jobs that a word means: that of the ID, those of the name that are not
// over, else the newest of the name, or else the only one whose ID begins so.
func (j jobs) named(word string) ([]string, error) {
	var live, begins []string
	newest := ""
	for _, p := range j.purchases {
		if p.ID == word {
			return []string{word}, nil
		}
		if strings.HasPrefix(p.ID, word) && !slices.ContainsFunc(begins, func(first string) bool { return strings.HasPrefix(p.ID, first+".") }) {
			begins = append(begins, p.ID)
		}
		if p.RFQ != word {
			continue
		}
		newest = p.ID
		if over, _, _ := j.state(p); !over {
			live = append(live, p.ID)
		}
	}
	switch {
	case len(live) > 0:
		return live, nil
	case newest != "":
		return []string{newest}, nil
	case len(begins) == 1:
		return begins, nil
	case len(begins) > 1:
		return nil, exit.Fail(exit.Usage, "give more of it", "--dependency: ID %q begins %d jobs", word, len(begins))
	}
	return nil, exit.Fail(exit.Usage, "'ramp user jobs' lists the jobs", "--dependency: no job %q", word)
}

// latest is the last attempt at a job.
func (j jobs) latest(id string) string {
	return words.Latest(id, func(id string) bool {
		return slices.ContainsFunc(j.purchases, func(p message.Purchase) bool { return p.ID == id })
	})
}

// afterPace is the pause between checks of the jobs that another job waits for.
const afterPace = time.Second

// Await waits until the jobs have ended, and says once which it waits for. If one of them
// should have ended with 0 and has not, nothing is to be bought.
func Await(ctx context.Context, agent *control.Client, list []After, say func(string)) error {
	waits, err := resolve(ctx, agent, list)
	if err != nil {
		return err
	}
	tick := time.NewTicker(afterPace)
	defer tick.Stop()
	for said := false; len(waits) > 0; said = true {
		j, err := askJobs(ctx, agent)
		if err != nil {
			return err
		}
		if waits, err = j.still(waits); err != nil || len(waits) == 0 {
			return err
		}
		if !said {
			say("waiting until these jobs end: " + j.words(waits))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return exit.Fail(exit.Failed, "repeat the command to wait again", "Interrupted. Nothing was bought.")
		}
	}
	return nil
}

func resolve(ctx context.Context, agent *control.Client, list []After) ([]After, error) {
	if len(list) == 0 {
		return nil, nil
	}
	j, err := askJobs(ctx, agent)
	if err != nil {
		return nil, err
	}
	var all []After
	for _, a := range list {
		ids, err := j.named(a.Job)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all = append(all, After{id, a.OK})
		}
	}
	return all, nil
}

// still are the jobs that are not over. It fails if one ended that should have succeeded.
func (j jobs) still(waits []After) ([]After, error) {
	var left []After
	for _, a := range waits {
		last := j.latest(a.Job)
		for _, p := range j.purchases {
			over, ok, how := j.state(p)
			switch {
			case p.ID != last:
			case !over:
				left = append(left, a)
			case a.OK && !ok:
				return nil, exit.Fail(exit.Nothing, "'afterany' starts after it however it ends", "nothing was bought, since %s (%.8s) %s", p.RFQ, p.ID, how)
			}
		}
	}
	return left, nil
}

func (j jobs) words(list []After) string {
	var names []string
	for _, a := range list {
		for _, p := range j.purchases {
			if p.ID == j.latest(a.Job) {
				names = append(names, fmt.Sprintf("%s (%.8s)", p.RFQ, p.ID))
			}
		}
	}
	return strings.Join(names, ", ")
}
