package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The federation of the demonstration: two centres of two sites. The jobs of low level count
// ten times a second; they fill all sites when the urgent one comes.
const (
	federationCores = 2
	countTo         = 150
	lowLevel        = "low"
	urgentLevel     = "urgent"
	countingTime    = 2 * time.Minute // bound on a job's state
	tableWidth      = 100
)

func federationSites() []string { return []string{"north", "south", "east", "west"} }

// Priority is the demonstration of a federation in JSON; the names are fixed.
type Priority struct {
	Policy    string            `json:"policy"`
	Refused   string            `json:"refused"` // to a user without the right to the level
	Urgent    control.JobView   `json:"urgent"`
	Low       []control.JobView `json:"low"`
	Preempted string            `json:"preempted"` // ID of the job that was
	PausedAt  int               `json:"paused_at"` // its last number before
	Counted   int               `json:"counted"`   // its last number
	Missing   int               `json:"missing"`   // numbers that it left out or repeated
	ElapsedMS int64             `json:"elapsed_ms"`
	Dir       string            `json:"dir,omitempty"`
}

// priority is a federation whose jobs are shown: ann may use every level, ben the lowest.
type priority struct {
	*modes
	result Priority
}

// ShowPriority brings a federation of four sites up, lets an urgent job displace one that counts, and takes it
// down again.
func (d *Market) ShowPriority(ctx context.Context, show func(text string)) (result Priority, err error) {
	p := &priority{modes: &modes{Market: d, users: map[string]*Process{}, show: show}, result: Priority{Policy: PriorityPolicy, Low: []control.JobView{}}}
	d.Begun, d.Cores = time.Now(), federationCores
	made, err := d.makeDir()
	if err != nil {
		return p.result, err
	}
	defer func() { err = d.Close(ctx, made, err) }()
	for _, step := range []func(context.Context) error{p.open, p.fill, p.refuse, p.displace, p.goOn} {
		if err := step(ctx); err != nil {
			return p.result, err
		}
	}
	p.result.ElapsedMS = time.Since(d.Begun).Milliseconds()
	if d.Keep {
		p.result.Dir = d.Dir
	}
	return p.result, nil
}

// open makes every agent before any site starts: the rules file names them all.
func (p *priority) open(ctx context.Context) error {
	p.progress("starting a bank, four sites of %d cores and two user agents in %s", federationCores, p.Dir)
	if err := p.startBank(ctx); err != nil {
		return err
	}
	defer p.Out.Done()
	rules := "levels: [low, normal, high, urgent]\nmean: 2s\nusers:\n"
	for _, u := range []struct{ name, level string }{{"ann", urgentLevel}, {"ben", lowLevel}} {
		p.soFar("starting %s", u.name)
		if err := p.buyer(ctx, u.name); err != nil {
			return err
		}
		rules += fmt.Sprintf("  %s: %s\n", p.users[u.name].Agent, u.level)
	}
	rules += "sites:\n"
	for i, name := range federationSites() {
		id, err := p.member(name)
		if err != nil {
			return err
		}
		rules += fmt.Sprintf("- {agent: %s, centre: centre%d}\n", id, 1+i/2)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "rules.yaml"), []byte(rules), 0o644); err != nil {
		return err
	}
	if err := p.serveMembers(ctx); err != nil {
		return err
	}
	return p.meet(ctx)
}

func (p *priority) member(name string) (protocol.AgentID, error) {
	_, site, err := p.here(0)
	if err != nil {
		return "", err
	}
	site.Local.Claims = filepath.Join(p.Dir, name+"-claims") // each has the machine for itself
	site.Federation = config.Federation{Rules: filepath.Join("..", "rules.yaml"), Cores: federationCores}
	dir, err := p.AgentDir(name, config.Config{Resource: site})
	if err != nil {
		return "", err
	}
	cred, err := (&config.Config{Certificate: "agent.pem", Key: "agent.key", Dir: dir}).Credential()
	if err != nil {
		return "", err
	}
	return cred.ID, nil
}

func (p *priority) serveMembers(ctx context.Context) error {
	for _, name := range federationSites() {
		p.soFar("starting %s", name)
		dir := filepath.Join(p.Dir, name)
		site, ready, err := spawn(dir, p.Keep, nil, "resource", "serve", "--dir", dir)
		if err != nil {
			return err
		}
		p.Sites = append(p.Sites, site)
		if err := site.await(ctx, ready); err != nil {
			return err
		}
		if err := p.account(ctx, site.Agent, name, false); err != nil {
			return err
		}
	}
	return nil
}

// meet waits until all members know that they have the same rules.
func (p *priority) meet(ctx context.Context) error {
	if err := p.sellers(ctx, len(federationSites())); err != nil {
		return err
	}
	for _, site := range p.Sites[len(p.users):] {
		err := poll(ctx, startTime, func() (bool, error) {
			var q control.SiteQueue
			err := Ask(ctx, site, control.FederationQueue, control.None{}, &q)
			for _, known := range q.Members {
				if known != "same" {
					return false, err
				}
			}
			return q.Modules > 0, err
		})
		if err != nil {
			return fmt.Errorf("%s has not met the other members: %w", site.Name, err)
		}
	}
	return nil
}

func (p *priority) submit(ctx context.Context, user, home, id, level, script string) (v control.JobView, err error) {
	call := control.JobCall{
		ID: id, Name: id, Home: home, Level: level, Terms: message.JobTerms{Least: federationCores, Most: federationCores, Wall: time.Hour},
		Program: &message.Program{Command: []string{"sh", "-c", script}, Detached: true},
	}
	err = Ask(ctx, p.users[user], control.JobSubmit, call, &v)
	return v, err
}

func (p *priority) await(ctx context.Context, user, id string, want ...message.JobState) (v control.JobView, err error) {
	defer p.Out.Done()
	err = poll(ctx, countingTime, func() (bool, error) {
		err := Ask(ctx, p.users[user], control.JobShow, control.IDCall{ID: id}, &v)
		if err == nil && v.State.Over() && v.State != message.JobDone {
			err = exit.Fail(exit.Failed, "", "job %s has %s: %s", id, v.State, v.Why)
		}
		p.soFar("%s: %s for %.0f s, suspended for %.0f s", id, v.State, v.Ran, v.Suspended)
		return slices.Contains(want, v.State), err
	})
	if err != nil {
		return v, fmt.Errorf("job %s is %s: %w", id, v.State, err)
	}
	return v, nil
}

// fill has every site run a job of low level.
func (p *priority) fill(ctx context.Context) error {
	count := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; sleep 0.1; done", countTo)
	for i, home := range federationSites() {
		id := fmt.Sprintf("low%d", i+1)
		if _, err := p.submit(ctx, "ben", home, id, lowLevel, count); err != nil {
			return err
		}
		v, err := p.await(ctx, "ben", id, message.JobRunning)
		if err != nil {
			return err
		}
		p.result.Low = append(p.result.Low, v)
		p.show(fmt.Sprintf("%s: offered by ben at %s, runs at %s; it counts to %d", id, home, v.Site.Name(), countTo))
	}
	return nil
}

// refuse shows that nobody uses a level by say-so.
func (p *priority) refuse(ctx context.Context) error {
	v, err := p.submit(ctx, "ben", federationSites()[0], "greedy", urgentLevel, "true")
	switch {
	case err != nil:
		return err
	case v.Refused == "":
		return exit.Fail(exit.Failed, "", "ben should not have been allowed to use level %s", urgentLevel)
	}
	p.result.Refused = v.Why
	p.show("ben offers an urgent job: " + v.Why)
	return nil
}

// displace runs an urgent job, for which one of the others is suspended.
func (p *priority) displace(ctx context.Context) error {
	offered := time.Now()
	if _, err := p.submit(ctx, "ann", federationSites()[0], urgentLevel, urgentLevel, "echo hurry; sleep 2"); err != nil {
		return err
	}
	v, err := p.await(ctx, "ann", urgentLevel, message.JobRunning, message.JobDone)
	if err != nil {
		return err
	}
	p.show(fmt.Sprintf("ann offers an urgent job: it runs at %s after %.1f s", v.Site.Name(), time.Since(offered).Seconds()))
	var table bytes.Buffer
	for _, low := range p.result.Low {
		if low.Site == v.Site {
			p.result.Preempted = low.ID
		}
	}
	if p.result.PausedAt, _, err = p.counted(ctx, p.result.Preempted); err != nil {
		return err
	}
	p.show(fmt.Sprintf("%s is suspended at %d", p.result.Preempted, p.result.PausedAt))
	if p.result.Urgent, err = p.await(ctx, "ann", urgentLevel, message.JobDone); err != nil {
		return err
	}
	order.WriteJob(&table, p.result.Urgent, func(w io.Writer, rows ...[]string) {
		for _, line := range words.TableLines(rows, tableWidth) {
			fmt.Fprintln(w, line)
		}
	})
	p.show(table.String())
	return nil
}

// counted is the last number that a job has printed, and how many numbers are not the one after
// the one before.
func (p *priority) counted(ctx context.Context, id string) (last, missing int, err error) {
	agent, err := p.users["ben"].call()
	if err != nil {
		return 0, 0, err
	}
	var out bytes.Buffer
	err = control.RunLog.Follow(ctx, agent, control.RunCall{ID: id, Unit: 1}, func(line control.LogLine) error {
		out.Write(line.Data)
		return nil
	})
	for _, line := range strings.Fields(out.String()) {
		n, e := strconv.Atoi(line)
		if e != nil || n != last+1 {
			missing++
		}
		last = n
	}
	return last, missing, err
}

// goOn waits for the ends of the jobs of low level.
func (p *priority) goOn(ctx context.Context) error {
	for i, low := range p.result.Low {
		v, err := p.await(ctx, "ben", low.ID, message.JobDone)
		if err != nil {
			return err
		}
		p.result.Low[i] = v
		last, missing, err := p.counted(ctx, v.ID)
		if err != nil {
			return err
		}
		if last != countTo || missing > 0 {
			return exit.Fail(exit.Failed, "", "%s ended at %d of %d, with %d numbers out of order", v.ID, last, countTo, missing)
		}
		if v.ID != p.result.Preempted {
			p.show(fmt.Sprintf("%s is done", v.ID))
			continue
		}
		if v.Preempted != 1 {
			return exit.Fail(exit.Failed, "", "%s was suspended %d times, not once", v.ID, v.Preempted)
		}
		p.result.Counted, p.result.Missing = last, missing
		p.show(fmt.Sprintf("%s is done: it went on with %d, and counted to %d; ran for %.1f s, suspended for %.1f s", v.ID, p.result.PausedAt+1, last, v.Ran, v.Suspended))
	}
	return nil
}
