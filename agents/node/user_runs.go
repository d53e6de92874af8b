package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/hub"
	"ramp/agents/mesh"
	"ramp/agents/parcels"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// userRuns answers what is asked of programs in what was bought.
type userRuns struct {
	userAgent
	runs *hub.Hub[message.Run]
	mesh *mesh.Mesh
}

func (u userRuns) routes(mux *http.ServeMux) {
	control.RunFollow.Stream(mux, u.followRun)
	control.RunControl.Answer(mux, u.control)
	control.RunLog.Stream(mux, u.log)
	control.RunFetch.Answer(mux, u.fetch)
	shelf := parcels.Shelf{Dir: filepath.Join(u.cfg.Dir, "parcels"), Needed: u.needed, Run: u.showRun, Open: u.open}
	control.RunUpload.Answer(mux, shelf.Take)
	control.RunFile.Stream(mux, shelf.Send)
	control.RunCollected.Answer(mux, func(ctx context.Context, q control.RunCall) (struct{}, error) {
		return struct{}{}, u.order(ctx, message.RunCollected{ID: q.ID})
	})
}

// needed are the programs of purchases and runs that are not over.
func (u userRecords) needed() (list []message.Program, err error) {
	err = u.journal.Each(user.TablePurchases, func(_ string, value []byte) error {
		row, err := user.ReadRow(value)
		if err == nil && row.Live() && row.Order.Program != nil {
			list = append(list, *row.Order.Program)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = u.journal.Each(user.TableRuns, func(_ string, value []byte) error {
		run, err := user.ReadRun(value)
		if err == nil && !run.Over {
			list = append(list, run.Program)
		}
		return err
	})
	return list, err
}

func (u userRecords) showRun(ctx context.Context, q control.RunCall) (message.Run, error) {
	value, err := u.journal.Get(user.TableRuns, q.ID)
	if err != nil {
		return message.Run{}, err
	}
	if value == nil {
		return message.Run{}, exit.Fail(exit.Usage, "'ramp jobs' lists them", "no program runs, or ran, in purchase %q", q.ID)
	}
	run, err := user.ReadRun(value)
	return u.asking(ctx, run), err
}

// asking adds to the units of a run that its outputs wait for its owner's verdict.
func (u userRecords) asking(ctx context.Context, run message.Run) message.Run {
	run.Units = slices.Clone(run.Units) // others follow the run, too
	for i := range run.Units {
		unit := &run.Units[i]
		if !withheld(*unit) || unit.Contract != "" { // bought again, under another ID
			continue
		}
		p, _ := u.show(ctx, control.IDCall{ID: run.ID}) // without it, the site's words are shown
		for _, x := range p.Units {
			if x.Unit == unit.Unit && user.Waits(x) {
				only := ""
				if len(p.Units) > 1 {
					only = fmt.Sprintf(" --unit %d", x.Unit+1)
				}
				unit.Status.Why = fmt.Sprintf("'ramp user agree %s%s' pays %s and brings the outputs", run.ID, only, x.Due.Cents())
			}
		}
	}
	return run
}

// withheld reports whether a site keeps the outputs of a unit until its usage is paid.
func withheld(u message.RunUnit) bool {
	return u.Status.Stage == message.StageCollecting && u.Status.Why != ""
}

// followRun sends every change of a run until it is over.
func (u userRuns) followRun(ctx context.Context, q control.RunCall, send func(message.Run) error) error {
	f, stop := u.runs.Follow(q.ID)
	defer stop()
	run, err := u.showRun(ctx, q)
	if err != nil {
		return err
	}
	for {
		if err := send(u.asking(ctx, run)); err != nil || run.Over {
			return err
		}
		if run, err = f.Next(ctx); err != nil {
			return nil //nolint:nilerr // the caller has left, or sees that the run is not over
		}
	}
}

// control suspends, resumes, kills, or asks how a run stands.
func (u userRuns) control(ctx context.Context, q control.RunCall) (message.Run, error) {
	run, err := u.showRun(ctx, q)
	switch {
	case err != nil:
		return run, err
	case !slices.Contains([]message.LaunchVerb{message.VerbStatus, message.VerbSuspend, message.VerbResume, message.VerbKill}, q.Verb):
		return run, exit.Fail(exit.Usage, "", "verb %q: want status, suspend, resume or kill", q.Verb)
	case run.Over && q.Verb != message.VerbStatus:
		return run, exit.Fail(exit.Nothing, "", "%s (%.8s) has ended already, with exit code %d", run.Name, q.ID, run.Exit)
	case run.Over:
		return run, nil
	case (q.Verb == message.VerbSuspend || q.Verb == message.VerbResume) && !slices.ContainsFunc(run.Units, submitted):
		return run, exit.Fail(exit.Nothing, "'ramp user status "+q.ID+"' asks the site", "%s has not begun: it is %s", q.ID, run.State)
	}
	if run.Federation && (q.Verb == message.VerbSuspend || q.Verb == message.VerbResume) {
		return run, exit.Fail(exit.Refused, "", "%s is a job of a federation: only its site suspends and resumes it", q.ID)
	}
	f, stop := u.runs.Follow(q.ID)
	defer stop()
	if err := u.order(ctx, message.RunControl{ID: q.ID, Verb: q.Verb}); err != nil {
		return run, exit.WithCode(exit.Failed, err)
	}
	run, err = u.awaitControl(ctx, q, f)
	return u.asking(ctx, run), err
}

// submitted reports whether a unit's batch system has its program: before that no site
// takes a word on it but that it is to end.
func submitted(u message.RunUnit) bool { return u.Status.Stage == message.StageSubmitted }

// FilesTime is how long a site may take to begin with what a program has printed or left.
const FilesTime = mesh.DialTimeout + mesh.HelloTimeout

// awaitControl waits until what was asked is so.
func (u userRuns) awaitControl(ctx context.Context, q control.RunCall, f *hub.Follower[message.Run]) (message.Run, error) {
	late, cancel := context.WithTimeout(ctx, control.ControlTime)
	defer cancel()
	asked := time.Now()
	for {
		run, err := f.Next(late)
		if err != nil {
			run, showErr := u.showRun(ctx, q)
			if late.Err() == nil || showErr != nil {
				return run, errors.Join(err, showErr)
			}
			return run, exit.Fail(exit.Unreachable, controlHint(q), "%s within %s; the last known state of %s is %s", silentSites(q.Verb, run, asked), control.ControlTime, q.ID, run.State)
		}
		if done(q.Verb, run, asked) {
			return run, nil
		}
		if u, why := refused(run, asked); why != "" {
			return run, exit.Fail(exit.Failed, "", "%s is %s: %s does not %s", q.ID, run.State, u.Resource, why)
		}
	}
}

// controlHint says what becomes of a word that no site has taken.
func controlHint(q control.RunCall) string {
	if q.Verb == message.VerbKill {
		return "it is asked until it does; 'ramp user status " + q.ID + "' shows the outcome"
	}
	return "the same command asks again; 'ramp doctor' finds the cause"
}

// silentSites names the sites that have not done what was asked.
func silentSites(verb message.LaunchVerb, run message.Run, asked time.Time) string {
	var names []string
	for _, u := range run.Units {
		if one := (message.Run{Units: []message.RunUnit{u}}); !done(verb, one, asked) && !slices.Contains(names, u.Resource) {
			names = append(names, u.Resource)
		}
	}
	if len(names) == 1 {
		return names[0] + " has not answered"
	}
	return strings.Join(names, ", ") + " have not answered"
}

// refused returns the unit whose batch system refused a request, and why.
func refused(run message.Run, asked time.Time) (message.RunUnit, string) {
	for _, u := range run.Units {
		if u.Status.Stage == message.StageSubmitted && u.Status.Why != "" && !u.Heard.Before(asked) {
			return u, u.Status.Why
		}
	}
	return message.RunUnit{}, ""
}

// done reports whether a run is as a verb wants it.
func done(verb message.LaunchVerb, run message.Run, asked time.Time) bool {
	return run.Over || !slices.ContainsFunc(run.Units, func(u message.RunUnit) bool {
		switch verb {
		case message.VerbSuspend:
			return u.Status.Job.State != protocol.JobSuspended && !u.Status.Stage.Over() && !u.Status.Job.State.Over()
		case message.VerbResume:
			return u.Status.Job.State == protocol.JobSuspended
		case message.VerbKill:
			return !u.Status.Stage.Over() && !u.Status.Job.State.Over()
		}
		return !u.Lost && !u.Status.Stage.Over() && u.Heard.Before(asked)
	})
}

// RunUnit is the unit that a call names; without a number, the only one.
func RunUnit(run message.Run, number int) (message.RunUnit, error) {
	if number == 0 && len(run.Units) > 0 {
		number = run.Units[0].Unit + 1
	}
	for _, u := range run.Units {
		if u.Unit == number-1 {
			return u, nil
		}
	}
	return message.RunUnit{}, exit.Fail(exit.Usage, "", "unit %d of %s: want 1..%d", number, run.ID, len(run.Units))
}
