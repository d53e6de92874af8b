// Package federated answers the local calls about the jobs of a federation of sites (003):
// those of a user agent about its own jobs, and those of a site about all that it has. It
// asks the role, and decides nothing.
package federated

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/recent"
	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// jobPause is between two looks at a job while a caller waits for it, and jobTime is how
// long its home may take to answer.
const (
	jobPause = 50 * time.Millisecond
	jobTime  = 10 * time.Second
)

// Users answers the calls of a user agent.
type Users struct {
	Runner  *agents.Runner
	Journal recent.Table
	Joined  func(ctx context.Context) error // waits until the agent has met the market
}

// Routes makes a mux answer the calls.
func (u Users) Routes(mux *http.ServeMux) {
	control.JobSubmit.Answer(mux, u.submitJob)
	control.JobShow.Answer(mux, u.showJob)
	var index recent.Index
	control.Jobs.Answer(mux, func(_ context.Context, q control.LastCall) ([]control.JobView, error) {
		return recent.Page(&index, u.Journal, user.TableJobs, q, func(value []byte) (control.JobView, error) {
			row, err := user.ReadJob(value)
			return control.ViewJob(row), err
		})
	})
}

// submitJob offers a job, and waits until its home has sold or refused it.
func (u Users) submitJob(ctx context.Context, q control.JobCall) (control.JobView, error) {
	if q.ID == "" || q.Program == nil {
		return control.JobView{}, exit.Fail(exit.Usage, "", "a job needs an id and a program")
	}
	home, err := u.home(ctx, q.Home)
	if err != nil {
		return control.JobView{}, err
	}
	q.Terms.Where = cmp.Or(q.Terms.Where, home)
	q.Terms.Level = cmp.Or(q.Terms.Level, 1) // its name counts
	if err := q.Terms.Validate(); err != nil {
		return control.JobView{}, exit.Fail(exit.Usage, "", "%w", err)
	}
	row, err := u.job(q.ID)
	row.Terms.Where = q.Terms.Where // any home will do
	switch {
	case err != nil: // it is new, or the ID is another's
		if v, err := u.Journal.Get(user.TableRuns, q.ID); err != nil || v != nil {
			return control.JobView{}, errors.Join(err, exit.Fail(exit.Usage, "give another --id", "a purchase has the ID %q", q.ID))
		}
	case row.Refused == "" && (row.Level != q.Level || row.Terms != q.Terms):
		return control.JobView{}, exit.Fail(exit.Usage, "give another --id", "job %q exists already, with other terms", q.ID)
	}
	if err != nil || row.Refused != "" { // else it goes on
		if err := u.order(ctx, message.JobSubmit{ID: q.ID, Name: q.Name, Home: home, Level: q.Level, Terms: q.Terms, Program: *q.Program}); err != nil {
			return control.JobView{}, err
		}
	}
	return u.awaitJob(ctx, q.ID, func(r message.JobRow) bool { return r.Over() || r.Withdrawn || r.Progress.Site != "" })
}

// home finds the site that is to auction a job.
func (u Users) home(ctx context.Context, name string) (protocol.AgentID, error) {
	if err := u.Joined(ctx); err != nil {
		return "", exit.WithCode(exit.Unreachable, err)
	}
	late := time.Now().Add(jobTime)
	for {
		known, err := agents.Read(ctx, u.Runner, func(now time.Time, r *user.Role) []user.Known { return r.Known(now, protocol.KindResource) })
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(known, func(k user.Known) bool {
			return k.Presence.Federation != "" && (name == "" || k.ID.Name() == name || string(k.ID) == name)
		})
		if i >= 0 {
			return known[i].ID, nil
		}
		if time.Now().After(late) {
			return "", exit.Fail(exit.Unreachable, "'ramp user resources' lists the known sites; leave --level out to buy time", "%s with a federation is known", strings.TrimSpace("no site "+name))
		}
		if !agents.Pause(ctx, jobPause) {
			return "", ctx.Err()
		}
	}
}

// order sends the role a message of its owner.
func (u Users) order(ctx context.Context, body protocol.Body) error {
	return u.Runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Performative: protocol.Request, Body: body})
	})
}

// job reads the record of a job.
func (u Users) job(id string) (message.JobRow, error) {
	value, err := u.Journal.Get(user.TableJobs, id)
	if err != nil {
		return message.JobRow{}, err
	}
	if value == nil {
		return message.JobRow{}, exit.Fail(exit.Usage, "", "no job %q was submitted to a federation", id)
	}
	return user.ReadJob(value)
}

func (u Users) awaitJob(ctx context.Context, id string, enough func(message.JobRow) bool) (control.JobView, error) {
	for {
		row, err := u.job(id)
		if err != nil || enough(row) {
			return control.ViewJob(row), err
		}
		if !agents.Pause(ctx, jobPause) {
			return control.ViewJob(row), ctx.Err()
		}
	}
}

// showJob asks a job's home, and shows what was known if it does not answer.
func (u Users) showJob(ctx context.Context, q control.IDCall) (control.JobView, error) {
	row, err := u.job(q.ID)
	if err != nil || row.Refused != "" || row.Over() && row.History != nil && row.History.Progress.State.Over() {
		return control.ViewJob(row), err
	}
	if err := u.order(ctx, message.JobAsk{Row: row}); err != nil {
		return control.JobView{}, err
	}
	asked := time.Now()
	late, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	v, err := u.awaitJob(late, q.ID, func(r message.JobRow) bool { return r.History != nil && r.Heard.After(asked) })
	if late.Err() != nil && ctx.Err() == nil {
		return v, nil // its home is away
	}
	return v, err
}

// Sites answers the calls of a site.
type Sites struct {
	Runner *agents.Runner
	Self   protocol.AgentID
}

// Routes makes a mux answer the calls.
func (r Sites) Routes(mux *http.ServeMux) { control.FederationQueue.Answer(mux, r.queue) }

// queue shows the jobs of a federation at a site.
func (r Sites) queue(ctx context.Context, _ control.None) (control.SiteQueue, error) {
	q := control.SiteQueue{Jobs: []control.QueueLine{}, Members: map[string]string{}}
	in := false
	err := r.Runner.Do(ctx, func(now time.Time, role agents.Role) (none protocol.Output) {
		site := resource.FederationOf(role.(*resource.Role))
		q.Shortage = resource.Shortage(role.(*resource.Role), now)
		if in = site != nil || q.Shortage != ""; site == nil {
			return none
		}
		rules := site.Rules()
		q.Rules, q.Modules, q.Auction = rules.Digest, site.Modules(), site.Bids()
		for _, x := range site.Queue() {
			q.Jobs = append(q.Jobs, control.QueueLine{
				ID: x.Job, Level: rules.Name(x.Terms.Level), Number: x.Terms.Level, State: x.State, Home: x.Home, Owner: x.Owner,
				Modules: control.JobModules{Least: x.Terms.Least, Most: x.Terms.Most, Got: x.Got}, Preempted: x.Preempted,
				Ran: x.Ran.Seconds(), Suspended: x.Suspended.Seconds(),
			})
		}
		for _, m := range rules.Members() {
			switch _, alien := site.Alien(m); {
			case alien:
				q.Members[string(m)] = "mismatch"
			case r.Self == m || site.Met(m):
				q.Members[string(m)] = "same"
			default:
				q.Members[string(m)] = "unknown"
			}
		}
		return none
	})
	if err == nil && !in {
		return q, exit.Fail(exit.Usage, "set resource.federation", "%s is in no federation", r.Self.Name())
	}
	slices.SortStableFunc(q.Jobs, func(a, b control.QueueLine) int { return b.Number - a.Number })
	return q, err
}
