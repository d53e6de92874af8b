package resource_test

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// payable is a unit that is sold, and paid when its job has succeeded.
type payable struct {
	*site
	t     *testing.T
	a     *agents
	buyer *buyer
	unit  protocol.BundleUnit

	bank    *ledger
	outputs []protocol.StagedFile // of its programs
}

func newPayable(t *testing.T) *payable {
	t.Helper()
	return newPayableBy(t, protocol.ModeOnCompletion)
}

func newPayableBy(t *testing.T, mode protocol.Mode) *payable {
	t.Helper()
	return newPayableOf(t, mode, "")
}

func newPayableOf(t *testing.T, mode protocol.Mode, contract string) *payable {
	t.Helper()
	a := newAgents(t, "ann", "atlas", "bank")
	cfg := a.config()
	cfg.Modes = []protocol.Mode{mode}
	cfg.Launch = launch.Config{
		Keep:   time.Minute,
		Policy: launch.Policy{Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {User: "guest", Commands: true}}},
	}
	p := &payable{site: newSite(t, cfg), t: t, a: a}
	p.buyer = &buyer{agents: a, name: "ann", site: p.site, mode: mode, contract: contract}
	l := &ledger{agents: a, decided: map[protocol.ContractID]protocol.Receipt{}}
	p.bank = l
	for i := 0; i < 20 && !p.buyer.sold; i++ {
		p.buyer.step()
		p.buyer.hear()
		l.work(p.site)
		p.buyer.hear()
		p.pass(time.Second)
	}
	if !p.buyer.sold {
		t.Fatal("nothing was bought")
	}
	p.unit = p.buyer.bundle.Bundle.Units[0]
	return p
}

// until lets time pass to so long after the slot's start.
func (p *payable) until(d time.Duration) { p.pass(p.unit.Slot.Start.Add(d).Sub(p.now)) }

// over lets time pass to a while after the slot's end.
func (p *payable) over() { p.until(p.unit.Slot.Wall() + time.Minute) }

// job is the name of a launch for the batch system.
func (p *payable) job(number string) string {
	return strings.ReplaceAll(p.unit.Reservation, "/", "_") + "." + number
}

// launch asks for a program, and has its files there.
func (p *payable) launch(number string) {
	p.receive(p.buyer.message(protocol.Request, protocol.ProtocolRequest, "go", message.Launch{
		Contract: p.buyer.bundle.ID, Unit: 0, ID: number, Command: []string{"/bin/work"}}))
	p.files(message.Prepared{Job: p.job(number)})
}

func (p *payable) files(body protocol.Body) {
	p.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalFiles, Body: body})
}

// ends has the batch system say that a program is over.
func (p *payable) ends(number string, s protocol.JobStatus) {
	s.Started, s.Ended = p.now.Add(-s.Usage.Wall), p.now
	p.batch.jobs[p.job(number)] = s
	p.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: message.JobChanged{ID: p.job(number), At: p.now, Status: s}})
	p.files(message.Collected{Job: p.job(number), Outputs: p.outputs})
}

// report is what the bank was told since the last look; nil: nothing.
func (p *payable) report() *contract.JobRecord {
	var note *contract.JobRecord
	for _, m := range p.take(p.a.id("bank")) {
		if body, ok := m.Body.(message.JobReport); ok {
			note = &body.Signed.Note
		}
	}
	return note
}

// reported is what the bank was told, which there must be.
func (p *payable) reported() contract.JobRecord {
	p.t.Helper()
	note := p.report()
	if note == nil {
		p.t.Fatal("the bank was told nothing")
	}
	return *note
}

// decided has the bank say how the unit ended.
func (p *payable) decided(how protocol.End) {
	id := p.buyer.bundle.ID
	r := p.bank.decided[id]
	r.Ends = append(r.Ends, protocol.UnitEnd{Unit: 0, Paid: p.unit.Tariff.Least, How: how, Entry: r.Entry + 1, Time: p.now.UTC()})
	p.bank.decided[id] = r
	p.receive(protocol.Message{Performative: protocol.Inform, Sender: p.a.id("bank"), Protocol: protocol.ProtocolRequest, Conversation: "p", Body: p.bank.decision(p.site, id)})
}

func exited(code int, wall time.Duration) protocol.JobStatus {
	return protocol.JobStatus{State: protocol.JobExited, Exit: code, Usage: protocol.Usage{CPU: wall, Wall: wall, Share: protocol.Core}}
}

// What is paid on completion is paid for what the program did.
func TestProgramsDecideWhatIsPaid(t *testing.T) {
	lost := protocol.JobStatus{State: protocol.JobLost, Usage: protocol.Usage{Wall: time.Second}}
	killed := protocol.JobStatus{State: protocol.JobKilled, Usage: protocol.Usage{Wall: time.Second}}
	for _, c := range []struct {
		name    string
		stuck   bool
		play    func(p *payable)
		success bool
		paid    bool
		wall    time.Duration
	}{
		{"nobody launched anything: the slot was kept ready", false, func(*payable) {}, true, true, time.Hour},
		{"a program that exits with 0 is paid", false, func(p *payable) {
			p.launch("1")
			p.until(time.Minute)
			p.ends("1", exited(0, time.Minute))
		}, true, true, time.Minute},
		{"one that exits with 3 has failed, and had its cores", false, func(p *payable) {
			p.launch("1")
			p.until(time.Minute)
			p.ends("1", exited(3, time.Minute))
		}, false, true, time.Minute},
		{"a program that the machine lost is not", false, func(p *payable) {
			p.launch("1")
			p.until(time.Minute)
			p.ends("1", lost)
		}, false, false, time.Second},
		{"what its owner killed had its cores", false, func(p *payable) {
			p.launch("1")
			p.until(time.Minute)
			p.ends("1", killed)
		}, true, true, time.Second},
		{"of several the last decides, and all count as used", false, func(p *payable) {
			p.launch("1")
			p.until(time.Minute)
			p.ends("1", exited(3, time.Minute))
			p.launch("2")
			p.until(3 * time.Minute)
			p.ends("2", exited(0, 2*time.Minute))
		}, true, true, 3 * time.Minute},
		{"a batch system that cannot begin it is the seller's failure", true, func(p *payable) {
			p.launch("1")
			p.until(time.Minute)
		}, false, false, 0},
		{"a launch that the site's rules refuse leaves the slot ready", false, func(p *payable) {
			p.receive(p.buyer.message(protocol.Request, protocol.ProtocolRequest, "go", message.Launch{
				Contract: p.buyer.bundle.ID, Unit: 0, ID: "1", App: "no such application"}))
		}, true, true, time.Hour},
		{"a buyer who does not bring the inputs had the slot ready", false, func(p *payable) {
			p.launch("1")
			p.receive(p.buyer.message(protocol.Request, protocol.ProtocolRequest, "kill",
				message.LaunchOrder{Contract: p.buyer.bundle.ID, Unit: 0, ID: "1", Verb: message.VerbKill}))
		}, true, true, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPayable(t)
			p.batch.stuck = c.stuck
			c.play(p)
			p.until(p.unit.Slot.Wall() - 2*time.Second)
			if note := p.report(); note != nil {
				t.Fatalf("reported before the slot was over: %+v", *note)
			}
			p.over()
			note := p.reported()
			due := p.unit.Cost
			if !c.paid {
				due = 0
			}
			if note.Success != c.success || note.Due != due || note.Usage.Wall != c.wall {
				t.Fatalf("reported success %t, %s due, used %s; want %t, %s, %s", note.Success, note.Due, note.Usage.Wall, c.success, due, c.wall)
			}
		})
	}
}

// A metered contract is over with its program, whether that exits or its owner kills
// it: what was used is due at once, the cores are free again, and nothing more runs in
// the unit. One that the machine loses leaves the slot to another.
func TestAMeteredContractEndsWithItsProgram(t *testing.T) {
	used := protocol.Usage{CPU: 20 * time.Minute, Wall: 20 * time.Minute, Share: protocol.Core}
	t.Run("exit", func(t *testing.T) { endsMetered(t, exited(1, 20*time.Minute)) })
	t.Run("kill", func(t *testing.T) { endsMetered(t, protocol.JobStatus{State: protocol.JobKilled, Usage: used}) })
}

func endsMetered(t *testing.T, end protocol.JobStatus) {
	p := newPayableBy(t, protocol.ModeMetered)
	p.launch("1")
	p.until(10 * time.Minute)
	p.ends("1", protocol.JobStatus{State: protocol.JobLost, Usage: protocol.Usage{CPU: 10 * time.Minute, Wall: 10 * time.Minute, Share: protocol.Core}})
	p.launch("2")
	p.until(30 * time.Minute)
	if note := p.report(); note != nil {
		t.Fatalf("reported while another may follow: %+v", *note)
	}
	p.ends("2", end)
	note := p.reported()
	used := protocol.Usage{CPU: 30 * time.Minute, Wall: 30 * time.Minute, Share: protocol.Core}
	if note.Usage != used || note.Due != p.unit.Due(protocol.ModeMetered, true, used) || note.Due == 0 || note.Due >= p.unit.Cost {
		t.Fatalf("reported %+v, %s due of %s", note.Usage, note.Due, p.unit.Cost)
	}
	if !note.Ended.Before(p.unit.Slot.End) {
		t.Errorf("it ended at %s, with its slot", note.Ended)
	}
	p.pass(time.Minute)
	if _, held := p.batch.slots[p.unit.Reservation]; held {
		t.Error("the cores of a contract that is over are still reserved")
	}
	p.receive(p.buyer.message(protocol.Request, protocol.ProtocolRequest, "go", message.Launch{
		Contract: p.buyer.bundle.ID, Unit: 0, ID: "3", Command: []string{"/bin/work"}}))
	if _, runs := p.batch.jobs[p.job("3")]; runs {
		t.Error("something runs in a unit whose contract is over")
	}
	p.over()
	if again := p.report(); again != nil && *again != note {
		t.Errorf("reported another record: %+v", *again)
	}
}

// A program that keeps its cores idle under a contract without a price for them, or that
// ends at once, pays the least that its seller asked for.
func TestReservedCoresAreNeverFree(t *testing.T) {
	p := newPayableBy(t, protocol.ModeMetered)
	if least := p.unit.Tariff.Least; least <= 0 || least != p.unit.Cost/100*resource.DefaultIdle {
		t.Fatalf("the contract asks for %s of %s at least, want a tenth", least, p.unit.Cost)
	}
	p.launch("1")
	p.until(time.Minute)
	p.ends("1", protocol.JobStatus{State: protocol.JobExited, Exit: 1, Usage: protocol.Usage{Wall: time.Minute, Share: protocol.Core}})
	if note := p.reported(); note.Due != p.unit.Tariff.Least || note.Success {
		t.Fatalf("%s is due, success %t; want %s, and a failure", note.Due, note.Success, p.unit.Tariff.Least)
	}
}

// A slot whose last program has ended is free again, however it is paid, and for good: a
// restart changes nothing, and no other program follows in it.
func TestASlotEndsWithItsLastProgram(t *testing.T) {
	for mode, state := range map[protocol.Mode]string{protocol.ModeOnReservation: "given back", protocol.ModeOnCompletion: "reported"} {
		p := newPayableBy(t, mode)
		p.receive(p.buyer.message(protocol.Request, protocol.ProtocolRequest, "go", message.Launch{
			Contract: p.buyer.bundle.ID, Unit: 0, ID: "1", Command: []string{"/bin/work"}, Last: true}))
		p.files(message.Prepared{Job: p.job("1")})
		p.until(time.Minute)
		p.ends("1", exited(0, time.Second))
		for range 2 {
			p.pass(10 * time.Second)
			if _, there := p.batch.slots[p.unit.Reservation]; there {
				t.Errorf("%s: the slot is still reserved", mode)
			}
			if list := p.role.Reservations(); len(list) != 1 || list[0].State != state {
				t.Errorf("%s: %+v, want one that is %s", mode, list, state)
			}
			p.start()
		}
	}
}

// The buyer of a metered unit gets the outputs only when the bank has the last word on
// its usage, which it may otherwise take and then dispute; a restart changes nothing.
func TestOutputsWaitForTheBanksWord(t *testing.T) {
	result := protocol.StagedFile{Path: "result", Size: 1, SHA256: strings.Repeat("0", 64)}
	gets := func(p *payable) int {
		g, _ := p.role.Launches().Grant(p.a.id("ann"), p.buyer.bundle.ID, 0, "1")
		s, _ := p.role.Launches().Status(p.a.id("ann"), p.buyer.bundle.ID, 0, "1")
		if len(g.Outputs) != len(s.Outputs) || s.Stage.Over() != (len(s.Outputs) > 0) {
			t.Fatalf("the buyer may fetch %d files, and is shown %d at stage %s", len(g.Outputs), len(s.Outputs), s.Stage)
		}
		return len(g.Outputs)
	}
	begun := func(mode protocol.Mode) *payable {
		p := newPayableBy(t, mode)
		p.outputs = []protocol.StagedFile{result}
		p.launch("1")
		p.until(time.Minute)
		p.ends("1", exited(0, time.Minute))
		return p
	}
	p := begun(protocol.ModeMetered)
	p.pass(30 * time.Second)
	if n := gets(p); n != 0 {
		t.Fatalf("%d outputs are given away before the usage is decided", n)
	}
	p.start()
	p.decided(protocol.EndAgreed)
	if n := gets(p); n != 1 {
		t.Fatalf("%d outputs once the usage is agreed, want 1", n)
	}
	late := begun(protocol.ModeMetered)
	late.pass(10 * time.Minute) // they are kept for one
	s, known := late.role.Launches().Status(late.a.id("ann"), late.buyer.bundle.ID, 0, "1")
	if known && (len(s.Outputs) > 0 || !s.Stage.Over()) {
		t.Fatalf("outputs that nobody has paid for are kept beyond their time: %+v", s)
	}
	if n := gets(begun(protocol.ModeOnCompletion)); n != 1 {
		t.Fatalf("%d outputs of a unit that is paid in any case, want 1", n)
	}
}

// A program whose prepayment is used up is stopped in that second, whatever price has
// used it up, and its cores are free again; so is one whose time limit is over, by its
// own clock. What it costs is the prepayment, and no more.
func TestAMeteredProgramIsStoppedWhenItsContractLets(t *testing.T) {
	for _, c := range []struct {
		name, contract string
		cpu            time.Duration // in a second, of ten cores
		begins, ends   time.Duration // from the slot's start
	}{
		{"the share is dear", `prepay="true"><r:P Pmax="60"/><r:Q Smin="0" Smax="1" Qmax="2400"/>`, time.Second, 0, 13*time.Minute + 45*time.Second},
		{"it begins late", `prepay="true"><r:P Pmax="60"/><r:Q Smin="0" Smax="1" Qmax="2400"/>`, time.Second, 5 * time.Minute, 18*time.Minute + 45*time.Second},
		{"its time limit is over", `timeLimit="10"><r:P rmax="1" Pmax="60"/>`, 10 * time.Second, 0, 10 * time.Minute},
		{"its time limit is over, counted from its beginning", `timeLimit="10"><r:P rmax="1" Pmax="60"/>`, 10 * time.Second, 5 * time.Minute, 15 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPayableOf(t, protocol.ModeMetered, `<r:Contract xmlns:r="urn:ramp:rfql:2" `+c.contract+`</r:Contract>`)
			p.batch.cpu = c.cpu
			p.until(c.begins)
			p.launch("1")
			p.until(c.ends - 2*time.Second)
			if note := p.report(); note != nil {
				t.Fatalf("reported too early: %+v", *note)
			}
			p.until(c.ends + 2*time.Second)
			note := p.reported()
			if want := c.ends - c.begins; note.Usage.Wall < want-time.Second || note.Usage.Wall > want+2*time.Second || note.Due > p.unit.Cost {
				t.Fatalf("reported %+v, %s due of %s; want %s", note.Usage, note.Due, p.unit.Cost, want)
			}
			if prepaid := p.unit.Tariff.Prepay; prepaid > 0 && note.Due != prepaid {
				t.Errorf("%s due, want the prepayment of %s", note.Due, prepaid)
			}
			if got := p.batch.jobs[p.job("1")].State; got != protocol.JobKilled {
				t.Errorf("it is %s", got)
			}
			p.pass(time.Minute)
			if _, held := p.batch.slots[p.unit.Reservation]; held {
				t.Error("its cores are still reserved")
			}
			p.files(message.Collected{Job: p.job("1")})
			if s, _ := p.role.Launches().Status(p.a.id("ann"), p.buyer.bundle.ID, 0, "1"); s.Job.State != protocol.JobExpired || !strings.Contains(s.Job.Note, "prepayment") {
				t.Errorf("its buyer is told %+v", s.Job)
			}
		})
	}
}

// Nothing is reported of a program that nobody has seen end.
func TestProgramThatMayRunIsNotReported(t *testing.T) {
	p := newPayable(t)
	p.launch("1")
	p.over()
	if note := p.report(); note != nil {
		t.Fatalf("reported while it may run: %+v", *note)
	}
	p.ends("1", exited(3, time.Minute))
	p.pass(15 * time.Minute)
	if note := p.reported(); note.Success {
		t.Fatal("a program that failed was reported as a success")
	}
}

// A seller that was away until long after the files' time is over still knows how
// the program ended.
func TestEndIsKeptUntilItIsReported(t *testing.T) {
	p := newPayable(t)
	p.launch("1")
	p.until(time.Minute)
	p.ends("1", exited(3, time.Minute))
	p.now = p.unit.Slot.End.Add(5 * time.Hour)
	p.start()
	p.pass(15 * time.Minute)
	if note := p.reported(); note.Success {
		t.Fatal("a program that failed was reported as a success")
	}
	p.pass(2 * time.Hour) // its clock may have been ahead
	if n := len(p.store[launch.Table]); n != 0 {
		t.Fatalf("%d launches are still remembered", n)
	}
}

// A buyer that has nothing more to run in a unit releases it: the seller sells the rest
// again, as after a last program, for good, and nothing more runs in it. A unit in which
// nothing ran is paid like one whose program ended at once.
func TestAReleasedUnitIsGivenBack(t *testing.T) {
	order := func(p *payable, id string) {
		p.receive(p.buyer.message(protocol.Request, protocol.ProtocolRequest, "go", message.LaunchOrder{Contract: p.buyer.bundle.ID, ID: id, Verb: message.VerbRelease}))
	}
	for _, c := range []struct {
		name    string
		mode    protocol.Mode
		runs    *protocol.JobStatus
		state   string
		due     func(u protocol.BundleUnit) protocol.Credits
		success bool
	}{
		{"paid on reservation, after a program", protocol.ModeOnReservation, new(exited(0, time.Second)), "given back", nil, false},
		{"paid on reservation, unused", protocol.ModeOnReservation, nil, "given back", nil, false},
		{"paid on completion, after a program", protocol.ModeOnCompletion, new(exited(0, time.Second)), "reported", func(u protocol.BundleUnit) protocol.Credits { return u.Cost }, true},
		{"paid on completion, after a failure", protocol.ModeOnCompletion, new(exited(3, time.Second)), "reported", func(u protocol.BundleUnit) protocol.Credits { return u.Cost }, false},
		{"paid on completion, after the machine lost the program", protocol.ModeOnCompletion, &protocol.JobStatus{State: protocol.JobLost}, "reported", func(protocol.BundleUnit) protocol.Credits { return 0 }, false},
		{"paid on completion, unused", protocol.ModeOnCompletion, nil, "reported", func(u protocol.BundleUnit) protocol.Credits { return u.Cost }, true},
		{"metered, unused", protocol.ModeMetered, nil, "reported", func(u protocol.BundleUnit) protocol.Credits { return u.Tariff.Least }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPayableBy(t, c.mode)
			if c.runs != nil {
				p.launch("1")
				p.until(time.Minute)
				order(p, "1")
				if list := p.role.Reservations(); list[0].State == c.state {
					t.Fatal("released while a program runs")
				}
				p.ends("1", *c.runs)
			}
			order(p, "1")
			if c.due != nil {
				if note := p.reported(); note.Due != c.due(p.unit) || note.Success != c.success || note.Ended.After(p.now) {
					t.Fatalf("reported %+v at %s", note, p.now)
				}
			}
			for range 2 {
				p.pass(10 * time.Second)
				order(p, "1")
				p.launch("2")
				if _, there := p.batch.slots[p.unit.Reservation]; there {
					t.Error("the slot is still reserved")
				}
				if list := p.role.Reservations(); len(list) != 1 || list[0].State != c.state {
					t.Errorf("%+v, want one that is %s", list, c.state)
				}
				if _, runs := p.batch.jobs[p.job("2")]; runs {
					t.Error("a program runs in a unit that was released")
				}
				p.start()
			}
		})
	}
}
