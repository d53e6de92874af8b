package market

import (
	"slices"
	"strings"
	"time"

	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// OneJob: each launch has one job, which begins once, also if its buyer has discarded it, in
// its slot, which is sold to the buyer that launched it. In the end buyer and seller agree on its status.
const OneJob = "B-one-job-per-launch"

// launchChecks owns how often the job of each launch has begun.
type launchChecks struct {
	audit *audit
	bank  *bankBook
	sites *siteBook
	begun map[launchKey]int

	sweeps *sweepChecks
}

// launchKey identifies a launch independently of the batch system's job ID.
type launchKey struct {
	contract protocol.ContractID
	unit     int
	launch   string
}

// launchOf reads a job's launch from its environment. The unit is that of the contract
// whose reservation it runs in, or -1.
func (c *launchChecks) launchOf(job message.Job) launchKey {
	value := func(name string) string {
		i := slices.IndexFunc(job.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if i < 0 {
			return ""
		}
		return job.Env[i][len(name)+1:]
	}
	k := launchKey{protocol.ContractID(value("RAMP_CONTRACT")), -1, value("RAMP_LAUNCH")}
	for _, u := range c.sites.bundles[k.contract].Units {
		if u.Reservation == job.Reservation {
			k.unit = u.Unit
		}
	}
	return k
}

// begins checks a program that begins on a site's machine.
func (c *launchChecks) begins(s *Site, job message.Job, now time.Time) {
	k, b := c.launchOf(job), protocol.BundleUnit{}
	c.sweeps.begins(k.launch)
	c.begun[k]++
	c.audit.check(OneJob, c.begun[k] == 1, "launch %s in unit %d of contract %.8s begins %d times", k.launch, k.unit, k.contract, c.begun[k])
	bundle := c.sites.bundles[k.contract]
	if i := slices.IndexFunc(bundle.Units, func(u protocol.BundleUnit) bool { return u.Unit == k.unit }); i >= 0 {
		b = bundle.Units[i]
	}
	c.audit.check(OneJob, c.bank.outcome[k.contract] == protocol.OutcomeSettled && b.Seller == s.Host.ID() && b.Reservation == job.Reservation,
		"%s runs %s for unit %d of contract %.8s, which is %q and not sold there", s.Host.Name, job.ID, k.unit, k.contract, c.bank.outcome[k.contract])
	c.audit.check(OneJob, job.Slot == b.Slot && !now.Before(b.Slot.Start) && now.Before(b.Slot.End),
		"%s runs %s at %s, its slot is %s to %s", s.Host.Name, job.ID, now.Format(time.TimeOnly), b.Slot.Start.Format(time.TimeOnly), b.Slot.End.Format(time.TimeOnly))
	if claim := c.sites.claims[s.Host.ID()][job.Reservation]; claim != nil { // the row is deleted after its slot
		c.audit.check(OneJob, claim.state == "sold", "%s runs %s in %s, which is %s", s.Host.Name, job.ID, job.Reservation, claim.state)
	}
}

// late is how long after the end of a slot buyer and seller may still disagree.
const late = 15 * time.Minute

// finish compares a buyer's view of its programs with that of their sites.
func (c *launchChecks) finish(u *User) {
	err := u.Host.Disk().Each(user.TableRuns, func(_ string, value []byte) error {
		run, err := user.ReadRun(value)
		for _, x := range run.Units {
			if c.audit.now().Sub(x.Slot.End) > late && u.Host.Up() {
				c.finishRun(u, run, x)
			}
		}
		return err
	})
	c.audit.check(OneJob, err == nil, "%s: its runs cannot be read: %v", u.Host.Name, err)
}

func (c *launchChecks) finishRun(buyer *User, run message.Run, u message.RunUnit) {
	s := c.audit.m.bySite[c.audit.m.World.Leader(u.Seller)]
	if s == nil {
		return // the seller is dishonest
	}
	role, up := s.Host.Role().(*resource.Role)
	if !up || c.audit.m.World.Now().Sub(c.audit.m.calmed) < late {
		return
	}
	if u.Lost {
		return // it waits for another slot; no site has it
	}
	contract, unit := run.Bought(u)
	told, known := role.Launches().Status(buyer.Host.ID(), contract, unit, u.Launch)
	begun := c.begun[launchKey{contract, unit, u.Launch}]
	switch {
	case c.sites.rewound[u.Seller]: // it has forgotten the launch at some time, and its answer then counts
		c.audit.check(OneJob, u.Status.Stage.Over(), "run %s believes that unit %d is %s; its site knows of no launch", run.ID, u.Unit, u.Status.Stage)
	case !known:
		c.audit.check(OneJob, u.Status.Stage.Over() && begun == 0 || u.Status.Stage == message.StageDone,
			"run %s believes that unit %d is %s; its site knows of no launch, and it began %d times", run.ID, u.Unit, u.Status.Stage, begun)
	default:
		c.audit.check(OneJob, told.Stage == u.Status.Stage && told.Job == u.Status.Job,
			"run %s believes that unit %d is %s %+v; its site has it as %s %+v", run.ID, u.Unit, u.Status.Stage, u.Status.Job, told.Stage, told.Job)
	}
}
