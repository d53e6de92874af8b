package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"ramp/agents/mesh"
	"ramp/agents/stage"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// runCall names a run, and what is asked of it.
type runCall struct {
	ID     string             `json:"id"`
	Verb   message.LaunchVerb `json:"verb,omitempty"`   // control
	Unit   int                `json:"unit,omitempty"`   // log, fetch: from 1
	Follow bool               `json:"follow,omitempty"` // log
	Dir    string             `json:"dir,omitempty"`    // fetch: an absolute path
}

// logLine is a piece of what a unit prints.
type logLine struct {
	Stream string `json:"stream"` // stdout or stderr
	Data   []byte `json:"data"`
}

// userRuns answers what is asked of programs in what was bought.
type userRuns struct {
	userAgent
	runs *hub[message.Run]
	mesh *mesh.Mesh
}

// runRoutes answers what the journal alone knows of runs.
func (u userRecords) runRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/runs", handler(u.listRuns))
	mux.HandleFunc("POST /v1/run", handler(u.showRun))
}

func (u userRuns) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/run/follow", u.followRun)
	mux.HandleFunc("POST /v1/run/control", handler(u.control))
	mux.HandleFunc("POST /v1/run/log", u.log)
	mux.HandleFunc("POST /v1/run/fetch", handler(u.fetch))
	mux.HandleFunc("POST /v1/run/collected", handler(u.collected))
}

// listRuns are the last runs, the oldest of them first.
func (u userRecords) listRuns(_ context.Context, q lastCall) ([]message.Run, error) {
	list := []message.Run{}
	err := u.journal.Each(user.TableRuns, func(_ string, value []byte) error {
		run, err := user.ReadRun(value)
		list = append(list, run)
		return err
	})
	sort.SliceStable(list, func(i, j int) bool { return list[i].Created.Before(list[j].Created) })
	return lastOf(list, q.Limit), err
}

func (u userRecords) showRun(_ context.Context, q runCall) (message.Run, error) {
	var run message.Run
	err := u.journal.Each(user.TableRuns, func(id string, value []byte) error {
		if id != q.ID {
			return nil
		}
		var err error
		if run, err = user.ReadRun(value); err != nil {
			return err
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return run, nil
	}
	if err != nil {
		return run, err
	}
	return run, fail(exitUsage, "'ramp user jobs' lists them", "no program runs, or ran, in purchase %q", q.ID)
}

// followRun answers every change of a run until it is over.
func (u userRuns) followRun(w http.ResponseWriter, r *http.Request) {
	q, err := readBody[runCall](w, r)
	if err != nil {
		refuseCall(w, err)
		return
	}
	f, stop := u.runs.follow(q.ID)
	defer stop()
	run, err := u.showRun(r.Context(), q)
	if err != nil {
		refuseCall(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	e := json.NewEncoder(w)
	flush, _ := w.(http.Flusher)
	for {
		if e.Encode(run) != nil || run.Over {
			return // or the caller has gone
		}
		flush.Flush()
		if run, err = f.next(r.Context()); err != nil {
			return // the caller has gone, or sees that the run is not over
		}
	}
}

// control suspends, resumes, kills, or asks how a run stands.
func (u userRuns) control(ctx context.Context, q runCall) (message.Run, error) {
	run, err := u.showRun(ctx, q)
	switch {
	case err != nil:
		return run, err
	case !slices.Contains([]message.LaunchVerb{message.VerbStatus, message.VerbSuspend, message.VerbResume, message.VerbKill}, q.Verb):
		return run, fail(exitUsage, "", "verb %q: want status, suspend, resume or kill", q.Verb)
	case run.Over && q.Verb != message.VerbStatus:
		return run, fail(exitNothing, "", "%s is over (%s)", q.ID, run.State)
	case run.Over:
		return run, nil
	case (q.Verb == message.VerbSuspend || q.Verb == message.VerbResume) && !slices.ContainsFunc(run.Units, submitted):
		return run, fail(exitNothing, "'ramp user status "+q.ID+"' asks the site", "%s has not begun, it is %s", q.ID, run.State)
	}
	f, stop := u.runs.follow(q.ID)
	defer stop()
	if err := u.order(ctx, message.RunControl{ID: q.ID, Verb: q.Verb}); err != nil {
		return run, withCode(exitFailed, err)
	}
	return u.awaitControl(ctx, q, f)
}

// submitted reports whether a unit's batch system has its program: before that no site
// takes a word on it but that it is to end.
func submitted(u message.RunUnit) bool { return u.Status.Stage == message.StageSubmitted }

// filesTime is how long a site may take to begin with what a program has printed or
// left.
const filesTime = mesh.DialTimeout + mesh.HelloTimeout

// controlTime is how long a word on a run may take to have an effect.
const controlTime = 10 * time.Second

// awaitControl waits until what was asked is so.
func (u userRuns) awaitControl(ctx context.Context, q runCall, f *follower[message.Run]) (message.Run, error) {
	late, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	asked := time.Now()
	for {
		run, err := f.next(late)
		if err != nil {
			run, showErr := u.showRun(ctx, q)
			if late.Err() == nil || showErr != nil {
				return run, errors.Join(err, showErr)
			}
			return run, fail(exitUnreachable, controlHint(q), "%s within %s; %s is %s, as far as was heard", silentSites(q.Verb, run, asked), controlTime, q.ID, run.State)
		}
		if done(q.Verb, run, asked) {
			return run, nil
		}
		if u, why := refused(run, asked); why != "" {
			return run, fail(exitFailed, "", "%s is %s: %s does not %s", q.ID, run.State, u.Resource, why)
		}
	}
}

// controlHint says what becomes of a word that no site has taken.
func controlHint(q runCall) string {
	if q.Verb == message.VerbKill {
		return "it is asked until it does; 'ramp user status " + q.ID + "' tells what came of it"
	}
	return "the same command asks again; 'ramp doctor' looks closer"
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

// refused is why a site's batch system does not do what was asked, and of which unit.
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
		return !u.Status.Stage.Over() && u.Heard.Before(asked)
	})
}

// runUnit is the unit that a call names; without a number, the only one.
func runUnit(run message.Run, number int) (message.RunUnit, error) {
	if number == 0 && len(run.Units) > 0 {
		number = run.Units[0].Unit + 1
	}
	for _, u := range run.Units {
		if u.Unit == number-1 {
			return u, nil
		}
	}
	return message.RunUnit{}, fail(exitUsage, "", "unit %d of %s: want 1..%d", number, run.ID, len(run.Units))
}

func (u userRuns) open(ctx context.Context, to protocol.AgentID) (stage.Stream, error) {
	return u.mesh.OpenFiles(ctx, to)
}

// logWriter sends pieces of a log to a caller.
type logWriter struct {
	name string
	e    *json.Encoder
	w    http.ResponseWriter
}

// Write sends one piece.
func (l logWriter) Write(b []byte) (int, error) {
	if err := l.e.Encode(logLine{l.name, b}); err != nil {
		return 0, err
	}
	if f, ok := l.w.(http.Flusher); ok {
		f.Flush()
	}
	return len(b), nil
}

// log answers what a unit prints.
func (u userRuns) log(w http.ResponseWriter, r *http.Request) {
	q, err := readBody[runCall](w, r)
	var run message.Run
	if err == nil {
		run, err = u.showRun(r.Context(), q)
	}
	var unit message.RunUnit
	if err == nil {
		unit, err = runUnit(run, q.Unit)
	}
	if err == nil && !q.Follow && unit.Status.Stage == message.StageFailed {
		err = fail(exitNothing, "", "nothing was printed: %s", unitWords(unit))
	}
	if err != nil {
		refuseCall(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	e := json.NewEncoder(w)
	t := tailing{u: u, q: q, run: run, unit: unit, stdout: logWriter{"stdout", e, w}, stderr: logWriter{"stderr", e, w}}
	if err := t.follow(r.Context()); err != nil && r.Context().Err() == nil {
		_ = e.Encode(callError{Error: err.Error(), Code: exitUnreachable}) // the caller has gone, or sees it
	}
}

// tailing follows what a unit prints across broken connections.
type tailing struct {
	u              userRuns
	q              runCall
	run            message.Run
	unit           message.RunUnit
	out, errs      int64
	stdout, stderr io.Writer
}

// follow goes on until the log has ended. Before its site has the launch there is
// nothing to read.
func (t *tailing) follow(ctx context.Context) error {
	rest := time.NewTicker(protocol.RetryFirst / 2)
	defer rest.Stop()
	for tries := 0; ; tries++ {
		if t.unit.Status.Stage != message.StageAsked {
			if err := t.once(ctx); !t.q.Follow || ctx.Err() != nil || err == nil && !t.moved(ctx) {
				return err
			}
		} else if !t.q.Follow {
			return nil
		}
		select {
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := t.look(ctx); err != nil || t.unit.Status.Stage == message.StageFailed {
			return err
		}
		if t.unit.Status.Stage.Over() && tries > overTries {
			return errors.New("its site does not tell what it has printed")
		}
	}
}

// look reads how the unit stands. One that was bought again prints from the start.
func (t *tailing) look(ctx context.Context) error {
	run, err := t.u.showRun(ctx, t.q)
	if err != nil {
		return err
	}
	before := t.unit.Launch
	t.run = run
	if t.unit, err = runUnit(run, t.unit.Unit+1); t.unit.Launch != before {
		t.out, t.errs = 0, 0
	}
	return err
}

// moved reports whether a log has ended because its unit is bought again.
func (t *tailing) moved(ctx context.Context) bool {
	before := t.unit.Launch
	return t.look(ctx) == nil && (t.unit.Lost || t.unit.Launch != before)
}

// overTries is how often a site is asked for the log of what is over.
const overTries = 40

func (t *tailing) once(ctx context.Context) error {
	s, err := t.u.open(ctx, t.unit.Seller)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // what hangs ends with it
	defer stop()
	defer s.Close() //nolint:errcheck // all was read
	contract, unit := t.run.Bought(t.unit)
	k := stage.Key{Contract: contract, Unit: unit, Launch: t.unit.Launch}
	return stage.Log(s, k, &t.out, &t.errs, t.q.Follow, t.stdout, t.stderr)
}

// fetch writes what a run has left to a directory.
func (u userRuns) fetch(ctx context.Context, q runCall) (message.Run, error) {
	run, err := u.showRun(ctx, q)
	switch {
	case err != nil:
		return run, err
	case !run.Over:
		return run, fail(exitNothing, "'ramp user logs -f "+q.ID+"' follows it", "%s is not over, it is %s", q.ID, run.State)
	case !filepath.IsAbs(q.Dir):
		return run, fail(exitUsage, "", "directory %q: want an absolute path", q.Dir)
	case q.Unit != 0:
		if _, err := runUnit(run, q.Unit); err != nil {
			return run, err
		}
	}
	why, some := "", false
	for _, unit := range run.Units {
		if q.Unit > 0 && unit.Unit != q.Unit-1 {
			continue
		}
		if len(unit.Status.Outputs) == 0 {
			why = cmp.Or(why, unit.Status.Why)
			continue
		}
		some = true
		if now := time.Now(); !unit.Status.Keep.After(now) {
			return run, fail(exitNothing, "", "%s kept the outputs of %s until %s", unit.Resource, q.ID, secondTime(unit.Status.Keep))
		}
		if err := fetchUnit(ctx, u.open, run, unit, outDir(q.Dir, len(run.Units), unit.Unit)); err != nil {
			return run, unfetched(q.ID, unit.Unit, err)
		}
	}
	if why != "" && !some {
		return run, fail(exitNothing, "", "%s left nothing that can be fetched: %s", q.ID, why)
	}
	return run, nil
}

// unfetched says what can be done about outputs that did not come: the site was not
// reached, or they cannot be written here.
func unfetched(id string, unit int, err error) error {
	var here *exitError
	if errors.As(err, &here) {
		return fail(here.code, here.hint, "outputs of unit %d: %w", unit+1, err)
	}
	return fail(exitUnreachable, "'ramp user fetch "+id+" --out DIR' goes on where it was", "outputs of unit %d: %w", unit+1, err)
}

// collected notes that the owner has what it wants of a run.
func (u userRuns) collected(ctx context.Context, q runCall) (struct{}, error) {
	return struct{}{}, u.order(ctx, message.RunCollected{ID: q.ID})
}
