package codec

import (
	"slices"
	"strings"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// launchBodies say what runs in a slot. Roles decide what a site runs.
var launchBodies = []row{
	body(43, func(c *coder, m *message.Launch, w *wire.Launch) {
		c.contract(&m.Contract, &w.Contract)
		c.unit(&m.Unit, &w.Unit)
		c.id("launch", &m.ID, &w.Id, protocol.MaxName)
		c.name("application", &m.App, &w.App, protocol.MaxName)
		size := 0
		argument := func(c *coder, m *string, w *[]byte) {
			if c.writes {
				*w = []byte(*m)
			} else {
				*m = string(*w)
			}
			if slices.Contains(*w, 0) { // it would end the argument
				c.malformed("an argument with a zero byte")
			}
			size += len(*w)
		}
		list(c, "parameters", &m.Params, &w.Params, protocol.MaxParams, func(c *coder, m *message.Param, w *wire.Param) {
			c.id("parameter", &m.Name, &w.Name, protocol.MaxName)
			argument(c, &m.Value, &w.Value)
		})
		values(c, "arguments", &m.Command, &w.Command, protocol.MaxArgs, argument)
		c.staged("inputs", &m.Inputs, &w.Inputs)
		whole(c, &m.Place.Number, &w.Place)
		whole(c, &m.Place.Units, &w.Places)
		same(c, &m.Last, &w.Last)
		switch {
		case m.Place != (message.Place{}) && (w.Place < 1 || w.Place > w.Places || w.Places > protocol.MaxUnits):
			c.malformed("unit %d of %d, want 1 to at most %d", w.Place, w.Places, protocol.MaxUnits)
		case size > protocol.MaxArgBytes:
			c.fail(protocol.CodeLimit, "arguments of %d bytes, want at most %d", size, protocol.MaxArgBytes)
		case len(m.Command) > 0 && m.Command[0] == "":
			c.malformed("a command without a program")
		}
	}, on(request, protocol.Request)),

	body(44, func(c *coder, m *message.LaunchOrder, w *wire.LaunchOrder) {
		c.contract(&m.Contract, &w.Contract)
		c.unit(&m.Unit, &w.Unit)
		c.id("launch", &m.ID, &w.Id, protocol.MaxName)
		if text(c, &m.Verb, &w.Verb); !m.Verb.Known() {
			c.malformed("unknown verb %.32q", w.Verb)
		}
		list(c, "peers", &m.Peers, &w.Peers, protocol.MaxUnits, func(c *coder, m *message.Peer, w *wire.Peer) {
			c.unit(&m.Unit, &w.Unit)
			c.host(&m.Address, &w.Address)
			c.needed("start", &m.Start, &w.Start)
			c.needed("end", &m.End, &w.End)
			c.cores(&m.Cores, &w.Cores)
		})
	}, on(request, protocol.Request)),

	body(45, func(c *coder, m *message.LaunchStatus, w *wire.LaunchStatus) {
		c.contract(&m.Contract, &w.Contract)
		c.unit(&m.Unit, &w.Unit)
		c.id("launch", &m.ID, &w.Id, protocol.MaxName)
		if text(c, &m.Stage, &w.Stage); !m.Stage.Known() {
			c.malformed("unknown stage %.32q", w.Stage)
		}
		c.host(&m.Address, &w.Address)
		number(c, "missing", &m.Missing, &w.Missing, 0, protocol.MaxStaged)
		if m.Job.State != "" || w.Job != nil { // the batch system has the job
			c.job(&m.Job, part(&w.Job))
		}
		c.staged("outputs", &m.Outputs, &w.Outputs)
		c.instant("keep", &m.Keep, &w.Keep)
		c.words("why", &m.Why, &w.Why)
	}, on(request, protocol.Agree, protocol.Inform)),
}

// staged copies a list of files, each path once and not below another.
func (c *coder) staged(field string, m *[]protocol.StagedFile, w *[]*wire.StagedFile) {
	list(c, field, m, w, protocol.MaxStaged, func(c *coder, m *protocol.StagedFile, w *wire.StagedFile) {
		same(c, &m.Path, &w.Path)
		same(c, &m.Size, &w.Size)
		same(c, &m.SHA256, &w.Sha256)
		same(c, &m.BLAKE3, &w.Blake3)
		same(c, &m.Exec, &w.Exec)
		if err := m.Validate(); err != nil {
			c.malformed("%w", err)
		}
	})
	if err := protocol.CheckTree(*m); err != nil {
		c.malformed("%s: %w", field, err)
	}
}

// host copies a host name or an IP address, which programs are given.
func (c *coder) host(m, w *string) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-%"
	same(c, m, w)
	if len(*w) > protocol.MaxPathName || strings.Trim(*w, plain) != "" {
		c.malformed("address %.80q, want a host name or an IP address", *w)
	}
}

func (c *coder) job(m *protocol.JobStatus, w *wire.JobStatus) {
	text(c, &m.State, &w.State)
	whole(c, &m.Exit, &w.Exit)
	c.instant("started", &m.Started, &w.Started)
	c.instant("ended", &m.Ended, &w.Ended)
	whole(c, &m.Usage.CPU, &w.Cpu)
	whole(c, &m.Usage.Wall, &w.Wall)
	same(c, &m.Usage.Share, &w.Share)
	same(c, &m.Memory, &w.Memory)
	c.words("note", &m.Note, &w.Note)
	if err := m.Validate(); err != nil {
		c.malformed("job: %w", err)
	}
}
