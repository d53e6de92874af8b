package federation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ramp/agents/resource/federation"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/protocol/message"
)

func id(name string) protocol.AgentID { return protocol.AgentID(name + "@" + strings.Repeat("a", 32)) }

// noTables are those of a site that begins.
type noTables struct{}

func (noTables) Get(string, string) ([]byte, error)            { return nil, nil }
func (noTables) Each(string, func(string, []byte) error) error { return nil }

// floor is a site of four modules whose batch system does at once what it is ordered.
type floor struct {
	*testing.T
	site   *federation.Site
	now    time.Time
	orders []string
}

func newFloor(t *testing.T, cfg federation.Config) *floor {
	text := fmt.Sprintf("levels: [low, normal, high, urgent]\nusers: {'*': urgent}\nsites:\n- {agent: %s}\n- {agent: %s}\n- {agent: %s}\n", id("here"), id("home"), id("other"))
	r, err := rules.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Self, cfg.Modules, cfg.Rules = id("here"), 4, r
	f := &floor{T: t, now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	if f.site, _, err = federation.New(cfg, f, noTables{}, f.now); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *floor) order(r federation.Run, what string) protocol.Output {
	f.orders = append(f.orders, what+" "+r.Job)
	return protocol.Output{}
}

func (f *floor) Stage(_ time.Time, r federation.Run) protocol.Output { return f.order(r, "stage") }
func (f *floor) Begin(_ time.Time, r federation.Run) protocol.Output { return f.order(r, "begin") }
func (f *floor) Drop(_ time.Time, r federation.Run) protocol.Output  { return f.order(r, "drop") }
func (f *floor) Signal(_ time.Time, r federation.Run, v message.JobSignal) protocol.Output {
	return f.order(r, string(v))
}

// local has the site run a job of its own that keeps so much memory.
func (f *floor) local(job string, level, modules int, memory int64) {
	f.site.Local(f.now, job, message.JobTerms{Level: level, Least: modules, Most: modules, Wall: time.Hour, Where: id("here")})
	f.heard(job, protocol.JobRunning, memory)
}

func (f *floor) heard(job string, state protocol.JobState, memory int64) {
	f.site.Heard(f.now, protocol.ContractID(job), protocol.JobStatus{State: state, Started: f.now, Memory: memory})
}

func (f *floor) receive(from protocol.AgentID, job string, p protocol.Performative, body protocol.Body) []protocol.Message {
	out, _ := f.site.Receive(f.now, protocol.Message{
		Performative: p, Sender: from, Receivers: []protocol.AgentID{id("here")}, Protocol: protocol.ProtocolEnglish, Conversation: job, Body: body,
	})
	return out.Send
}

// bid is what the site bids for an urgent job of so many modules; zero: nothing.
func (f *floor) bid(job string, modules int, bytes int64) (b message.JobBid) {
	for _, m := range f.receive(id("home"), job, protocol.Inform, message.AuctionOpen{
		Rules: f.site.Rules().Digest, Owner: id("ann"), Number: 1, Ends: f.now.Add(time.Second),
		Terms: message.JobTerms{Level: 4, Least: modules, Most: modules, Wall: time.Hour, Bytes: bytes, Where: id("here")},
	}) {
		if m.Performative == protocol.Propose {
			b = m.Body.(message.JobBid)
		}
	}
	return b
}

func (f *floor) ordered(want ...string) {
	f.Helper()
	if got := strings.Join(f.orders, ", "); got != strings.Join(want, ", ") {
		f.Errorf("orders are %s; want %s", got, strings.Join(want, ", "))
	}
	f.orders = nil
}

// Beyond the memory that suspended jobs may keep there are no victims, and no bid with them.
func TestSuspendedMemoryIsBounded(t *testing.T) {
	const gib = 1 << 30
	f := newFloor(t, federation.Config{Memory: 3 * gib})
	f.local("a", 1, 2, 2*gib)
	f.now = f.now.Add(time.Minute)
	f.local("b", 1, 2, 2*gib)
	f.ordered("begin a", "begin b")
	if b := f.bid("both", 4, 0); len(b.Victims) > 0 {
		t.Errorf("it bids %+v, and both victims have 4 GiB of 3", b)
	}
	if b := f.bid("one", 2, 0); len(b.Victims) != 1 || b.Victims[0].Modules != 2 {
		t.Errorf("it bids %+v for the modules of one of them", b)
	}
	f.local("urgent", 4, 2, 0)
	f.ordered("suspend b") // the newest
	f.heard("b", protocol.JobSuspended, 2*gib)
	f.ordered("begin urgent")
	if b := f.bid("more", 2, 0); len(b.Victims) > 0 {
		t.Errorf("1 GiB is left, and it bids %+v", b)
	}
	f.local("second", 4, 2, 0)
	f.ordered()
	f.heard("urgent", protocol.JobExited, 0)
	f.ordered("begin second") // it waited for free modules
	f.heard("second", protocol.JobExited, 0)
	f.ordered("resume b")
	f.heard("b", protocol.JobRunning, 2*gib)
	if b := f.bid("again", 2, 0); len(b.Victims) != 1 {
		t.Errorf("the memory is free again, and it bids %+v", b)
	}
}

// With fewer modules the last jobs of the lowest level are suspended, and go on once there are more.
func TestFewerModulesSuspendJobs(t *testing.T) {
	f := newFloor(t, federation.Config{})
	f.local("a", 1, 2, 0)
	f.now = f.now.Add(time.Minute)
	f.local("b", 1, 2, 0)
	f.ordered("begin a", "begin b")
	f.site.Resize(f.now, 4, f.now)
	f.ordered()
	f.site.Resize(f.now, 3, f.now)
	f.ordered("suspend b")
	f.heard("b", protocol.JobSuspended, 0)
	f.ordered()
	f.site.Resize(f.now, 4, f.now)
	f.ordered("resume b")
}

// Where jobs end with the reservation of the modules, only those begin that end before.
func TestAJobEndsBeforeTheReservation(t *testing.T) {
	f := newFloor(t, federation.Config{Longest: time.Hour})
	f.site.Resize(f.now, 4, f.now.Add(time.Hour))
	f.local("long", 1, 2, 0)
	f.ordered()
	f.site.Resize(f.now, 4, f.now.Add(2*time.Hour))
	f.ordered("begin long")
	f = newFloor(t, federation.Config{Longest: time.Minute})
	if b := f.bid("job", 1, 0); b.Seq != 0 {
		t.Errorf("it bids %+v for a job that never fits", b)
	}
}

// A site does not bid for input that it would not take, and refuses to auction such a job.
func TestInputThatIsTooLarge(t *testing.T) {
	f := newFloor(t, federation.Config{Input: 1000})
	if b := f.bid("fits", 1, 1000); b.Free != 1 {
		t.Errorf("it bids %+v", b)
	}
	if b := f.bid("large", 1, 1001); b.Free > 0 {
		t.Errorf("it bids %+v for what it does not take", b)
	}
	offer := message.JobOffer{Level: "low", Terms: message.JobTerms{Level: 1, Least: 1, Most: 1, Wall: time.Hour, Bytes: 1001, Where: id("here")}}
	m := f.receive(id("ann"), "mine", protocol.Request, offer)
	if len(m) != 1 || m[0].Performative != protocol.Refuse {
		t.Fatalf("%+v", m)
	}
	want := "inputs of 1001 bytes, this site takes at most 1000; offer the job to a site that takes more"
	if r := m[0].Body.(message.Refusal).Reasons[0]; r.Code != protocol.CodeSize || r.Note != want {
		t.Errorf("%+v", r)
	}
}

// No owner has more jobs at a home than are left for others, whatever nobody bids for.
func TestAnOwnerLeavesJobsForOthers(t *testing.T) {
	f := newFloor(t, federation.Config{})
	offered := func(from string, n int) bool {
		m := f.receive(id(from), fmt.Sprint(from, n), protocol.Request, message.JobOffer{Level: "low", Terms: message.JobTerms{Level: 1, Least: 1 << 20, Most: 1 << 20, Wall: time.Hour, Where: id("here")}})
		return m[0].Performative == protocol.Agree
	}
	n := 0
	for offered("eve", n) {
		n++
	}
	if n != federation.MaxJobs/2 || !offered("ann", 1) || !offered("bob", 1) {
		t.Errorf("eve has %d jobs; want %d, and others can have some", n, federation.MaxJobs/2)
	}
}

// A job that a signal has missed is told again, until its batch system reports that it stands
// still; nothing begins on its modules before.
func TestModulesAreFreeOnceTheirJobStandsStill(t *testing.T) {
	f := newFloor(t, federation.Config{})
	f.local("low", 1, 4, 0)
	f.local("urgent", 4, 1, 0)
	f.ordered("begin low", "suspend low")
	f.heard("low", protocol.JobRunning, 0)
	f.now = f.now.Add(5 * time.Second)
	f.site.Wake(f.now)
	f.ordered("suspend low")
	f.heard("low", protocol.JobSuspended, 0)
	f.ordered("begin urgent")
	f.heard("low", protocol.JobSuspended, 0)
	f.heard("urgent", protocol.JobExited, 0)
	f.ordered("resume low")
}

// A home that awards jobs and never decides gets so many, also in auctions that it had opened before.
func TestUndecidedAwardsOfAHomeAreBounded(t *testing.T) {
	f := newFloor(t, federation.Config{})
	const jobs = federation.MaxUndecided + 4
	bids := map[string]message.JobBid{}
	heard := func(list []protocol.Message) (taken int) {
		for _, m := range list {
			switch b := m.Body.(type) {
			case message.JobBid:
				if bids[m.Conversation] = b; m.Performative == protocol.Refuse {
					delete(bids, m.Conversation)
				}
			case message.JobAward:
				if m.Performative == protocol.Agree {
					taken++
				}
			}
		}
		return taken
	}
	name := func(n int) string { return fmt.Sprintf("job%02d", n) }
	for n := range jobs {
		if bids[name(n)] = f.bid(name(n), 1, 0); bids[name(n)].Free != 1 {
			t.Fatalf("it bids %+v", bids[name(n)])
		}
	}
	taken := 0
	for n := range jobs {
		b, ok := bids[name(n)]
		if !ok {
			t.Fatalf("after %d awards, it does not bid for others", n)
		}
		taken += heard(f.receive(id("home"), name(n), protocol.AcceptProposal, message.JobAward{Award: 1, Number: b.Number, Seq: b.Seq}))
		for range 20 {
			f.now = f.now.Add(time.Second)
			heard(f.site.Wake(f.now).Send)
		}
	}
	if taken != federation.MaxUndecided {
		t.Errorf("it took %d, want %d", taken, federation.MaxUndecided)
	}
}

// A member that opens auctions without end takes no other member's place, and its own are
// forgotten.
func TestAuctionsWithoutEndAreForgotten(t *testing.T) {
	f := newFloor(t, federation.Config{})
	open := func(home protocol.AgentID, job string, ends time.Time) []protocol.Message {
		return f.receive(home, job, protocol.Inform, message.AuctionOpen{
			Rules: f.site.Rules().Digest, Owner: id("ann"), Number: 1, Ends: ends,
			Terms: message.JobTerms{Level: 4, Least: 1, Most: 1, Wall: time.Hour, Where: id("here")},
		})
	}
	for i := range federation.MaxBids + 1 {
		open(id("home"), fmt.Sprint("job", i), f.now.AddDate(1000, 0, 0))
	}
	if n := f.site.Bids(); n != federation.MaxBids/3 {
		t.Errorf("%d of its auctions are followed, want a third of %d", n, federation.MaxBids)
	}
	if len(open(id("other"), "job", f.now.Add(time.Minute))) == 0 {
		t.Error("no bid in another home's auction")
	}
	f.now = f.now.Add(24 * time.Hour)
	f.site.Wake(f.now)
	if n := f.site.Bids(); n != 0 {
		t.Errorf("%d auctions are followed a day later", n)
	}
}

// sell has a home sell a job of an owner to the site, if it bids.
func (f *floor) sell(home, owner protocol.AgentID, job string, modules int) bool {
	open := message.AuctionOpen{
		Rules: f.site.Rules().Digest, Owner: owner, Number: 1, Ends: f.now.Add(time.Second),
		Terms: message.JobTerms{Level: 4, Least: modules, Most: modules, Wall: time.Hour, Where: id("here")},
	}
	for _, m := range f.receive(home, job, protocol.Inform, open) {
		if b, ok := m.Body.(message.JobBid); ok && m.Conversation == job && m.Performative == protocol.Propose {
			a := message.JobAward{Award: 1, Number: 1, Seq: b.Seq}
			f.receive(home, job, protocol.AcceptProposal, a)
			f.receive(home, job, protocol.Confirm, a)
			return true
		}
	}
	return false
}

// A job that was sold keeps the modules that it will need, and no others.
func TestASoldJobKeepsItsModules(t *testing.T) {
	f := newFloor(t, federation.Config{})
	if !f.sell(id("home"), id("ann"), "a", 3) {
		t.Fatal("no bid")
	}
	if b := f.bid("one", 1, 0); b.Free != 1 {
		t.Errorf("one module is left, and it bids %+v", b)
	}
	if b := f.bid("two", 2, 0); b.Free != 0 {
		t.Errorf("one module is left, and for two it bids %+v", b)
	}
	f.site.Staged(f.now, message.JobContract(id("home"), "a", 1))
	f.ordered("stage a", "begin a")
	f.local("low", 1, 1, 0)
	if c := f.site.Capacity(); c.Free != 0 || len(c.Coming) > 0 {
		t.Errorf("%+v", c)
	}
	if !f.sell(id("home"), id("ann"), "b", 1) {
		t.Fatal("no bid with a victim")
	}
	if b := f.bid("three", 1, 0); len(b.Victims) > 0 {
		t.Errorf("its victim's module is promised, and it bids %+v", b)
	}
}

func TestAnEndedJobSaysWhy(t *testing.T) {
	for state, want := range map[protocol.JobState]string{
		protocol.JobExited: "", protocol.JobExpired: "it was ended at its time limit", protocol.JobLost: "it was lost",
	} {
		f, c := newFloor(t, federation.Config{}), message.JobContract(id("home"), "a", 1)
		f.sell(id("home"), id("ann"), "a", 1)
		f.site.Staged(f.now, c)
		f.heard(string(c), state, 0)
		if r, ok := f.site.Find(c); !ok || r.Why != want {
			t.Errorf("%s: %q, want %q", state, r.Why, want)
		}
	}
}

// Who buys and never brings the input keeps modules for a moment, once, until it brings some;
// and so many jobs in total.
func TestLateInputKeepsNoModules(t *testing.T) {
	f := newFloor(t, federation.Config{})
	later := func(d time.Duration) {
		f.now = f.now.Add(d)
		f.site.Wake(f.now)
	}
	free := func(want int, when string) {
		t.Helper()
		if got := 4 - 4*len(f.site.Capacity().Coming); got != want {
			t.Errorf("%s: %d modules are free, want %d", when, got, want)
		}
	}
	if !f.sell(id("home"), id("ann"), "job0", 4) {
		t.Fatal("no bid")
	}
	free(0, "sold")
	later(15 * time.Second)
	free(4, "late")
	sold := 1
	for f.sell(id("home"), id("ann"), fmt.Sprint("job", sold), 4) {
		free(4, "sold again")
		sold++
	}
	if sold != federation.MaxUndecided {
		t.Errorf("%d jobs without input were taken, want %d", sold, federation.MaxUndecided)
	}
	// Others are not harmed: the same owner at another home, other owners at this one.
	for _, x := range [][2]protocol.AgentID{{id("other"), id("ann")}, {id("home"), id("bob")}} {
		if !f.sell(x[0], x[1], "honest", 4) {
			t.Errorf("no bid for %s of %s", x[1].Name(), x[0].Name())
		}
		free(0, "another's")
		f.site.Never(f.now, message.JobContract(x[0], "honest", 1), "cancelled")
	}
	later(15 * time.Second)
	f.site.Staged(f.now, message.JobContract(id("home"), "job1", 1))
	f.ordered("stage job0", "stage job1", "stage job2", "stage job3", "stage job4", "stage job5", "stage job6", "stage job7", "stage honest", "stage honest", "begin job1")
	f.heard(string(message.JobContract(id("home"), "job1", 1)), protocol.JobExited, 0)
	if !f.sell(id("home"), id("ann"), "job9", 4) {
		t.Fatal("no bid after a success")
	}
}

// A home that invents an owner for each job is late with all of them.
func TestAHomeIsLateWithAllItsOwners(t *testing.T) {
	f := newFloor(t, federation.Config{})
	for n := range 4 {
		if !f.sell(id("home"), id(fmt.Sprint("owner", n)), fmt.Sprint("job", n), 4) {
			t.Fatal("no bid")
		}
		f.now = f.now.Add(15 * time.Second)
		f.site.Wake(f.now)
	}
	if !f.sell(id("home"), id("next"), "next", 4) {
		t.Fatal("no bid")
	}
	if c := f.site.Capacity(); len(c.Coming) > 0 {
		t.Errorf("modules are kept for the fifth owner: %+v", c)
	}
}

// Where jobs end with a reservation, a site bids for what ends before it, also while another job
// waits for the next one.
func TestASiteBidsForWhatEndsBeforeItsReservation(t *testing.T) {
	f := newFloor(t, federation.Config{Longest: 48 * time.Hour})
	f.site.Resize(f.now, 4, f.now.Add(30*time.Minute))
	if b := f.bid("hour", 1, 0); b.Seq != 0 {
		t.Errorf("a bid for an hour half an hour before the end: %+v", b)
	}
	f.site.Resize(f.now, 4, f.now.Add(24*time.Hour))
	f.site.Local(f.now, "long", message.JobTerms{Level: 4, Least: 1, Most: 1, Wall: 48 * time.Hour, Where: id("here")})
	f.ordered()
	if b := f.bid("short", 1, 0); b.Free != 1 {
		t.Errorf("a bid for an hour with four free modules: %+v", b)
	}
}
