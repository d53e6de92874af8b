package federation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ramp/agents"
	"ramp/agents/resource/federation"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// NewCast creates the authority of federations.
func NewCast() (*Cast, error) {
	ca, err := identity.NewCA("Simulated CA", Dawn.AddDate(-1, 0, 0), certificates, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		return nil, err
	}
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	if err != nil {
		return nil, err
	}
	return &Cast{ca: ca, trust: trust, by: map[string]*identity.Credential{}}, nil
}

const certificates = 30 * 365 * 24 * time.Hour

// Prepare makes the credentials of so many parties, so that several worlds can share the cast.
func (c *Cast) Prepare(sites, users int) {
	for i := range sites {
		c.credential(fmt.Sprintf("site%d", i+1))
	}
	for i := range users {
		c.credential(fmt.Sprintf("user%d", i+1))
	}
}

// credential is that of a party: a name always has the same key.
func (c *Cast) credential(name string) *identity.Credential {
	if c.by[name] == nil {
		seed := [32]byte{2}
		copy(seed[1:], name)
		cred, err := c.ca.Credential(name, Dawn.AddDate(0, -1, 0), certificates/2, rand.NewChaCha8(seed))
		if err != nil {
			panic(fmt.Sprintf("federation: credential of %s: %v", name, err))
		}
		c.by[name] = cred
	}
	return c.by[name]
}

// member is a site of the world.
type member struct {
	world   *World
	id      protocol.AgentID
	host    *sim.Host
	batch   *batch
	modules int
}

// Fate is what became of a job.
type Fate struct {
	Job     Job
	Begun   int // how often
	Site    protocol.AgentID
	Started time.Time // first
	Ended   time.Time
	Paused  int // how often
}

// World is a running federation.
type World struct {
	*sim.World
	cfg        Config
	rules      rules.Rules
	chance     sim.Chance
	sites      []*member
	users      []*sim.Host
	roles      []*user
	fates      map[string]*Fate
	order      []string // of the jobs
	Violations []string
}

// Open makes a federation; Live runs it.
func Open(cast *Cast, cfg Config) *World {
	w := &World{cfg: cfg, chance: sim.NewChance(cfg.Seed, 11), fates: map[string]*Fate{}}
	w.World = sim.New(sim.Config{Seed: cfg.Seed, Start: Dawn, Trust: cast.trust, Faults: cfg.Faults, Peace: time.Minute})
	var sites, users []protocol.AgentID
	for i := range cfg.Modules {
		sites = append(sites, cast.credential(fmt.Sprintf("site%d", i+1)).ID)
	}
	for i := range cfg.Users {
		users = append(users, cast.credential(fmt.Sprintf("user%d", i+1)).ID)
	}
	_, members := cast.lies(cfg.Liars)
	w.rules = cfg.Rules(append(slices.Clone(sites), members...), users)
	for i := range cfg.Modules {
		w.addSite(cast.credential(sites[i].Name()), i)
	}
	for i := range cfg.Users {
		cred := cast.credential(users[i].Name())
		u := &user{self: cred.ID, patient: w.patience(), quiet: cfg.Free}
		w.roles = append(w.roles, u)
		w.users = append(w.users, w.Add(sim.Spec{Name: cred.ID.Name(), Credential: cred, Steady: true, Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
			return u, protocol.Output{}, nil
		}}))
	}
	w.addLiars(cast)
	for _, j := range cfg.Jobs(sites) {
		w.offer(j)
	}
	return w
}

// patience is until users order reruns: only liars make them do so.
func (w *World) patience() time.Duration {
	if len(w.cfg.Liars) == 0 {
		return 0
	}
	return 12 * time.Hour
}

func (w *World) addSite(cred *identity.Credential, i int) {
	s := &member{world: w, id: cred.ID, modules: w.cfg.Modules[i]}
	s.batch = &batch{site: s, by: map[string]*process{}}
	cfg := federation.Config{Self: cred.ID, Modules: s.modules, Rules: w.rules, Keep: 10 * 365 * 24 * time.Hour, Stage: 24 * time.Hour}
	if w.rules.Poll > 0 {
		cfg.Phase = w.chance.For(sim.Span{Most: w.rules.Poll})
	}
	if w.cfg.Free {
		cfg.Most, cfg.Fixed = 1<<62, true
	}
	s.host = w.Add(sim.Spec{
		Name: cred.ID.Name(), Credential: cred, Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return newRole(cfg, t, now)
		},
		Locals:      map[protocol.AgentID]sim.Local{protocol.LocalQueue: s.batch, protocol.LocalFiles: &files{s}},
		Unavailable: agents.Unavailable,
	})
	w.sites = append(w.sites, s)
}

// offer plans the offer of a job.
func (w *World) offer(j Job) {
	w.fates[j.ID] = &Fate{Job: j}
	w.order = append(w.order, j.ID)
	home := w.sites[j.Home]
	w.After(j.At, func() {
		if j.Local {
			w.local(home, j)
			return
		}
		w.Order(w.users[j.Owner], offerJob{j, home.id})
	})
}

// local hands a site a job of its own, again until it is durable there.
func (w *World) local(s *member, j Job) {
	if r, ok := s.host.Role().(*role); ok {
		if _, known := r.site.Find(protocol.ContractID(j.ID)); known && s.host.Waiting() == 0 {
			return
		}
		w.Order(s.host, localJob{j})
	}
	w.After(time.Minute, func() { w.local(s, j) })
}

// Live runs the world: with faults, then without, until every job has ended. stop ends it early.
func (w *World) Live(stop func() bool) {
	const step = time.Hour
	for t := time.Duration(0); t < w.cfg.Time && !stop(); t += step {
		w.Run(min(step, w.cfg.Time-t))
	}
	w.Calm()
	for t := time.Duration(0); t < w.cfg.Calm && !stop() && !w.done(); t += step {
		w.Run(step)
	}
	for _, id := range w.order {
		if f := w.fates[id]; f.Ended.IsZero() && w.expected(f.Job) && !stop() {
			w.fault("job %s of level %d has not ended: it began %d times", id, f.Job.Terms.Level, f.Begun)
		}
	}
}

// expected reports whether a job may run at all: its owner has the right to its level.
func (w *World) expected(j Job) bool {
	return j.Local || w.rules.Allowed(w.roles[j.Owner].self) >= j.Terms.Level
}

func (w *World) done() bool {
	for _, f := range w.fates {
		if f.Ended.IsZero() && w.expected(f.Job) {
			return false
		}
	}
	return true
}

// Fates are what became of the jobs, in the order of their offers.
func (w *World) Fates() []Fate {
	list := make([]Fate, len(w.order))
	for i, id := range w.order {
		list[i] = *w.fates[id]
	}
	return list
}

// Better counts the jobs that went to another site than the first bidder's.
func (w *World) Better() (ended, better int) {
	for _, s := range w.sites {
		if r, ok := s.host.Role().(*role); ok {
			e, b := r.site.Better()
			ended, better = ended+e, better+b
		}
	}
	return ended, better
}

func (w *World) fault(format string, args ...any) {
	if len(w.Violations) < 20 {
		w.Violations = append(w.Violations, fmt.Sprintf(format, args...))
	}
}

// length is how long a job runs on so many modules.
func (w *World) length(job string, got int) time.Duration {
	f := w.fates[job]
	if f == nil {
		return time.Hour // nobody offered it
	}
	work := f.Job.Work
	return work / 1024 * 1000 / speedUp(got) * 1024 // equal for all units of time that differ by 1024
}

// began checks the begin of a job.
func (w *World) began(s *member, p *process, now time.Time) {
	f := w.fates[p.job]
	if f == nil {
		w.fault("%s runs %s, which nobody offered", s.id.Name(), p.job)
		return
	}
	f.Begun++
	if f.Begun > 1 {
		w.fault("%s has begun %d times: at %s and at %s", p.job, f.Begun, f.Site.Name(), s.id.Name())
	}
	if !w.expected(f.Job) {
		w.fault("%s runs at level %d, which its owner may not use", p.job, f.Job.Terms.Level)
	}
	f.Site, f.Started = s.id, now
	w.runs(s)
}

// runs checks that what runs at a site fits.
func (w *World) runs(s *member) {
	n := 0
	for _, p := range s.batch.by {
		if p.status.State == protocol.JobRunning {
			n += p.got
		}
	}
	if n > s.modules {
		w.fault("%s has %d modules, and jobs run on %d", s.id.Name(), s.modules, n)
	}
}

// suspended checks that a more urgent job of the site needs the modules, unless its agent
// is down or has just been.
func (w *World) suspended(s *member, p *process) {
	f := w.fates[p.job]
	if f == nil {
		return
	}
	f.Paused++
	r, ok := s.host.Role().(*role)
	if !ok {
		return
	}
	for _, x := range r.site.Runs() {
		if x.Terms.Level > f.Job.Terms.Level && (x.State == message.JobWaiting || x.State == message.JobRunning || x.State == message.JobSuspended) {
			return
		}
	}
	if s.host.Uptime() > time.Hour {
		w.fault("%s of level %d is suspended at %s, where nothing more urgent waits or runs", p.job, f.Job.Terms.Level, s.id.Name())
	}
}

func (w *World) ended(job string, now time.Time) {
	if f := w.fates[job]; f != nil {
		f.Ended = now
	}
}
