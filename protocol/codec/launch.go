package codec

import (
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// setLaunchBody is setBody for what runs in a slot.
func setLaunchBody(e *wire.Envelope, body protocol.Body) bool {
	switch b := body.(type) {
	case message.Launch:
		e.Body = &wire.Envelope_Launch{Launch: launchToWire(b)}
	case message.LaunchOrder:
		e.Body = &wire.Envelope_LaunchOrder{LaunchOrder: launchOrderToWire(b)}
	case message.LaunchStatus:
		e.Body = &wire.Envelope_LaunchStatus{LaunchStatus: launchStatusToWire(b)}
	default:
		return setSoldBody(e, body)
	}
	return true
}

func (r *reader) launchBody(e *wire.Envelope) protocol.Body {
	switch b := e.Body.(type) {
	case *wire.Envelope_Launch:
		return r.launch(b.Launch)
	case *wire.Envelope_LaunchOrder:
		return r.launchOrder(b.LaunchOrder)
	case *wire.Envelope_LaunchStatus:
		return r.launchStatus(b.LaunchStatus)
	}
	return r.soldBody(e)
}

func launchToWire(l message.Launch) *wire.Launch {
	w := &wire.Launch{Contract: string(l.Contract), Unit: int64(l.Unit), Id: l.ID, App: l.App, Inputs: stagedToWire(l.Inputs)}
	w.Place, w.Places = int64(l.Place.Number), int64(l.Place.Units)
	for _, p := range l.Params {
		w.Params = append(w.Params, &wire.Param{Name: p.Name, Value: []byte(p.Value)})
	}
	for _, a := range l.Command {
		w.Command = append(w.Command, []byte(a))
	}
	return w
}

// launch reads what is to run. Which of it a site runs is for the role.
func (r *reader) launch(w *wire.Launch) message.Launch {
	l := message.Launch{
		Contract: r.contract(w.GetContract()), Unit: r.unit(w.GetUnit()), ID: r.id("launch", w.GetId()),
		App:     r.name("application", w.GetApp(), protocol.MaxName),
		Params:  list(r, "parameters", w.GetParams(), protocol.MaxParams, r.param),
		Command: list(r, "arguments", w.GetCommand(), protocol.MaxArgs, r.argument),
		Inputs:  r.staged("inputs", w.GetInputs()),
		Place:   r.place(w.GetPlace(), w.GetPlaces()),
	}
	size := 0
	for _, a := range l.Command {
		size += len(a)
	}
	for _, p := range l.Params {
		size += len(p.Value)
	}
	switch {
	case size > protocol.MaxArgBytes:
		r.fail(protocol.CodeLimit, "arguments of %d bytes, want at most %d", size, protocol.MaxArgBytes)
	case len(l.Command) > 0 && l.Command[0] == "":
		r.malformed("a command without a program")
	}
	return l
}

// place reads where a launch stands in a run: both figures, or none.
func (r *reader) place(number, units int64) message.Place {
	none := number == 0 && units == 0
	if !none && (number < 1 || number > units || units > protocol.MaxUnits) {
		r.malformed("unit %d of %d, want 1 to at most %d", number, units, protocol.MaxUnits)
	}
	return message.Place{Number: int(number), Units: int(units)}
}

func (r *reader) param(w *wire.Param) message.Param {
	return message.Param{Name: r.id("parameter", w.GetName()), Value: r.argument(w.GetValue())}
}

// argument reads what is given to a program: any bytes but zero, which no program
// can be given.
func (r *reader) argument(b []byte) string {
	if slices.Contains(b, 0) {
		r.malformed("an argument with a zero byte")
	}
	return string(b)
}

func stagedToWire(files []protocol.StagedFile) []*wire.StagedFile {
	list := make([]*wire.StagedFile, len(files))
	for i, f := range files {
		list[i] = &wire.StagedFile{Path: f.Path, Size: f.Size, Sha256: f.SHA256, Blake3: f.BLAKE3, Exec: f.Exec}
	}
	return list
}

// staged reads a list of files, each path once and none of them below another.
func (r *reader) staged(field string, w []*wire.StagedFile) []protocol.StagedFile {
	files := list(r, field, w, protocol.MaxStaged, func(w *wire.StagedFile) protocol.StagedFile {
		f := protocol.StagedFile{Path: w.GetPath(), Size: w.GetSize(), SHA256: w.GetSha256(), BLAKE3: w.GetBlake3(), Exec: w.GetExec()}
		if err := f.Validate(); err != nil {
			r.malformed("%w", err)
		}
		return f
	})
	if err := protocol.CheckTree(files); err != nil {
		r.malformed("%s: %w", field, err)
	}
	return files
}

func launchOrderToWire(o message.LaunchOrder) *wire.LaunchOrder {
	w := &wire.LaunchOrder{Contract: string(o.Contract), Unit: int64(o.Unit), Id: o.ID, Verb: string(o.Verb)}
	for _, p := range o.Peers {
		w.Peers = append(w.Peers, &wire.Peer{Unit: int64(p.Unit), Address: p.Address, Start: nanos(p.Start), End: nanos(p.End), Cores: int64(p.Cores)})
	}
	return w
}

func (r *reader) launchOrder(w *wire.LaunchOrder) message.LaunchOrder {
	o := message.LaunchOrder{
		Contract: r.contract(w.GetContract()), Unit: r.unit(w.GetUnit()), ID: r.id("launch", w.GetId()),
		Verb: message.LaunchVerb(w.GetVerb()), Peers: list(r, "peers", w.GetPeers(), protocol.MaxUnits, r.peer),
	}
	if !o.Verb.Known() {
		r.malformed("verb %.32q is unknown", w.GetVerb())
	}
	return o
}

func (r *reader) peer(w *wire.Peer) message.Peer {
	return message.Peer{
		Unit: r.unit(w.GetUnit()), Address: r.host(w.GetAddress()), Start: r.needed("start", w.GetStart()),
		End: r.needed("end", w.GetEnd()), Cores: r.cores(w.GetCores()),
	}
}

// host reads a host name or an IP address: it is handed to programs.
func (r *reader) host(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-%"
	if len(s) > protocol.MaxPathName || strings.Trim(s, plain) != "" {
		r.malformed("address %.80q, want a host name or an IP address", s)
	}
	return s
}

func launchStatusToWire(s message.LaunchStatus) *wire.LaunchStatus {
	return &wire.LaunchStatus{
		Contract: string(s.Contract), Unit: int64(s.Unit), Id: s.ID, Stage: string(s.Stage), Address: s.Address,
		Missing: int64(s.Missing), Job: jobToWire(s.Job), Outputs: stagedToWire(s.Outputs), Keep: nanos(s.Keep), Why: words(s.Why),
	}
}

func (r *reader) launchStatus(w *wire.LaunchStatus) message.LaunchStatus {
	s := message.LaunchStatus{
		Contract: r.contract(w.GetContract()), Unit: r.unit(w.GetUnit()), ID: r.id("launch", w.GetId()),
		Stage: message.LaunchStage(w.GetStage()), Address: r.host(w.GetAddress()),
		Missing: r.number("missing", w.GetMissing(), 0, protocol.MaxStaged), Job: r.job(w.GetJob()),
		Outputs: r.staged("outputs", w.GetOutputs()), Keep: r.instant("keep", w.GetKeep()), Why: r.words("why", w.GetWhy()),
	}
	if !s.Stage.Known() {
		r.malformed("stage %.32q is unknown", w.GetStage())
	}
	return s
}

func jobToWire(s protocol.JobStatus) *wire.JobStatus {
	if s.State == "" {
		return nil
	}
	return &wire.JobStatus{
		State: string(s.State), Exit: int64(s.Exit), Started: nanos(s.Started), Ended: nanos(s.Ended),
		Cpu: int64(s.Usage.CPU), Wall: int64(s.Usage.Wall), Share: s.Usage.Share, Memory: s.Memory, Note: words(s.Note),
	}
}

// job reads how a job stands; none before the batch system has it.
func (r *reader) job(w *wire.JobStatus) protocol.JobStatus {
	if w == nil {
		return protocol.JobStatus{}
	}
	s := protocol.JobStatus{
		State: protocol.JobState(w.GetState()), Exit: int(w.GetExit()),
		Started: r.instant("started", w.GetStarted()), Ended: r.instant("ended", w.GetEnded()),
		Usage:  protocol.Usage{CPU: time.Duration(w.GetCpu()), Wall: time.Duration(w.GetWall()), Share: w.GetShare()},
		Memory: w.GetMemory(), Note: r.words("note", w.GetNote()),
	}
	if err := s.Validate(); err != nil {
		r.malformed("job: %w", err)
	}
	return s
}
