package user

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TableJobs has one message.JobRow per job of a federation, by ID.
const TableJobs = "federation-jobs"

// jobPeriod is how often a job's home is asked how it stands: its word may be lost.
const jobPeriod = 20 * time.Second

// jobs holds the jobs that were offered to a federation (003) and are not over. Once its
// home has sold a job, the program is launched at the winner like one in a bought slot.
type jobs struct {
	cfg  *Config
	runs *runs
	by   map[string]*job
}

type job struct {
	message.JobRow
	at    time.Time // when its home is asked next
	tries int
}

// ReadJob decodes a record of TableJobs.
func ReadJob(value []byte) (message.JobRow, error) { return decode[message.JobRow]("a job", value) }

func (js *jobs) restore(t protocol.Tables, now time.Time) (protocol.Output, error) {
	var out protocol.Output
	err := t.Each(TableJobs, func(_ string, value []byte) error {
		row, err := ReadJob(value)
		if err == nil && !row.Over() {
			j := &job{JobRow: row}
			js.by[row.ID] = j
			if js.runs.by[row.ID] == nil && row.Progress.Site == "" && !row.Withdrawn { // from before jobs were runs at once
				out = out.Join(js.runs.launch(now, js.run(j, row.Created, js.seeking(j))))
			}
			out = out.Join(js.drive(now, j))
		}
		return err
	})
	return out, err
}

// submit takes the owner's order. The record is durable before the home hears of it.
func (js *jobs) submit(now time.Time, o message.JobSubmit) protocol.Output {
	if js.by[o.ID] != nil {
		return protocol.Output{}
	}
	j := &job{JobRow: message.JobRow{ID: o.ID, Name: o.Name, Home: o.Home, Level: o.Level, Terms: o.Terms, Program: o.Program, Created: now}}
	js.by[o.ID] = j
	return js.save(j).Join(js.runs.launch(now, js.run(j, now, js.seeking(j)))).Join(js.drive(now, j))
}

func (js *jobs) run(j *job, now time.Time, u message.RunUnit) message.Run {
	contract := message.JobContract(j.Home, j.ID, j.Progress.Award)
	return message.Run{ID: j.ID, Name: j.Name, Contract: contract, Created: now, Program: j.Program, Units: []message.RunUnit{u}, Federation: true}
}

// withdraw takes back a job that no site has. One that a site has by then is killed there.
func (js *jobs) withdraw(now time.Time, j *job) protocol.Output {
	j.Withdrawn, j.tries = true, 0
	return js.save(j).Join(js.drive(now, j))
}

func (js *jobs) save(j *job) protocol.Output {
	return protocol.Output{Save: []protocol.Record{record(TableJobs, j.ID, j.JobRow)}}
}

// drive offers a job, or asks how it stands.
func (js *jobs) drive(now time.Time, j *job) protocol.Output {
	j.at = now.Add(min(jobPeriod, retryAfter(j.tries)))
	j.tries++
	var body protocol.Body = message.JobOffer{Terms: j.Terms, Level: j.Level}
	switch {
	case j.Withdrawn && j.Progress.Site == "" && j.tries%2 == 1: // and asked in between: it may be sold
		body = message.JobOrder{Verb: message.JobCancel}
	case j.Known || j.Withdrawn:
		body = message.JobOrder{Verb: message.JobShow}
	}
	return protocol.Output{WakeAt: j.at, Send: []protocol.Message{{
		Performative: protocol.Request, Sender: js.cfg.self(), Receivers: []protocol.AgentID{j.Home},
		Protocol: protocol.ProtocolEnglish, Conversation: j.ID, Body: body,
	}}}
}

// maxAsked is how often the home of a job that is over is asked for its history.
const maxAsked = 3

// ask asks the home of a job at once, also after it has ended.
func (js *jobs) ask(now time.Time, row message.JobRow) protocol.Output {
	j := js.by[row.ID]
	if j == nil && !row.Over() {
		return protocol.Output{} // it has ended since the row was read
	}
	if j == nil {
		j = &job{JobRow: row}
		js.by[row.ID] = j
	}
	j.tries = 0
	return js.drive(now, j)
}

// receive takes the word of a job's home; false: the message is about something else.
func (js *jobs) receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	if m.Protocol != protocol.ProtocolEnglish {
		return protocol.Output{}, false
	}
	j := js.by[m.Conversation]
	if j == nil || j.Home != m.Sender {
		return protocol.Output{}, true // nobody else may tell
	}
	switch b := m.Body.(type) {
	case message.JobProgress:
		return js.heard(now, j, b), true
	case message.JobHistory:
		j.History = &b
		return js.heard(now, j, b.Progress), true
	case message.Refusal:
		return js.refused(now, j, b), true
	}
	return protocol.Output{}, true
}

func (js *jobs) heard(now time.Time, j *job, p message.JobProgress) protocol.Output {
	before := j.Progress
	if p.Award < before.Award || before.State.Over() && !p.State.Over() {
		return protocol.Output{WakeAt: j.at} // overtaken, or repeated
	}
	j.Known, j.Progress, j.Heard, j.tries = true, p, now, 0
	if j.at = now.Add(jobPeriod); p.State.Over() && j.Ended.IsZero() {
		j.Ended = now
	}
	out := js.save(j)
	if p.Site != "" && (p.Site != before.Site || p.Award != before.Award) {
		out = out.Join(js.launch(now, j))
	}
	if x := js.runs.by[j.ID]; p.Site == "" && before.Site != "" && !p.State.Over() && x != nil && !j.Withdrawn {
		stop, v := x.stageStop(0), js.run(j, x.view.Created, js.seeking(j)) // it is given back
		out = out.Join(js.runs.update(now, js.runs.add(v), true)).Join(protocol.Output{Send: []protocol.Message{stop}})
	}
	if x := js.runs.by[j.ID]; x != nil && p.Got > 0 && x.view.Units[0].Slot.Cores != p.Got && !x.view.Units[0].Lost {
		x.view.Units[0].Slot.Cores = p.Got
		out = out.Join(js.runs.update(now, x, true))
	}
	return js.end(now, j, out)
}

// seeking is the unit of a job that no site has.
func (js *jobs) seeking(j *job) message.RunUnit {
	return message.RunUnit{Resource: j.Home.Name(), Lost: true, Status: message.LaunchStatus{Stage: message.StageAsked}}
}

// refused ends a job that its home does not take. One that cannot take it now is asked again.
func (js *jobs) refused(now time.Time, j *job, r message.Refusal) protocol.Output {
	why := protocol.Reason{Code: protocol.CodeUnknown, Note: "no reason was given"}
	if len(r.Reasons) > 0 {
		why = r.Reasons[0]
	}
	if j.Known && (why.Code != protocol.CodeUnknown || j.Progress.Site != "") || why.Code == protocol.CodeUnavailable {
		return protocol.Output{WakeAt: j.at}
	}
	j.Refused, j.Why, j.Heard = why.Code, why.Note, now
	return js.end(now, j, js.save(j))
}

func (js *jobs) end(now time.Time, j *job, out protocol.Output) protocol.Output {
	if j.Over() {
		delete(js.by, j.ID)
		if x := js.runs.by[j.ID]; x != nil && x.view.Units[0].Lost {
			failLost(now, &x.view.Units[0], cmp.Or(j.Why, j.Progress.Why, "no site has it"))
			out = out.Join(js.runs.end(now, x))
		}
		return out
	}
	out.WakeAt = protocol.Earlier(out.WakeAt, j.at)
	return out
}

// launch brings the program to the winner, or to the next one after the last has returned the job.
func (js *jobs) launch(now time.Time, j *job) protocol.Output {
	v := js.run(j, now, message.RunUnit{
		Launch: fmt.Sprintf("%s.%d", j.ID, j.Progress.Award), Resource: j.Progress.Site.Name(), Seller: j.Progress.Site,
		// Where it begins and ends is not known: it may be suspended for as long as it takes.
		Slot:   protocol.Slot{Start: now, End: now.Add(message.MaxJobWall), Cores: j.Terms.Least},
		Status: message.LaunchStatus{Stage: message.StageAsked},
	})
	var stop []protocol.Message
	if x := js.runs.by[j.ID]; x != nil {
		if v.Created = x.view.Created; x.view.Units[0].Launch != "" {
			stop = []protocol.Message{x.stageStop(0)}
		}
	}
	x := js.runs.add(v)
	x.view.Killing = j.Withdrawn // a site takes that before a launch
	return js.runs.drive(now, x, true).Join(protocol.Output{Send: stop})
}

func (js *jobs) wake(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(js.by)) {
		switch j := js.by[id]; {
		case now.Before(j.at):
			out.WakeAt = protocol.Earlier(out.WakeAt, j.at)
		case j.Over() && j.tries >= maxAsked:
			delete(js.by, id)
		default:
			out = out.Join(js.drive(now, j))
		}
	}
	return out
}
