// Package escape tries to break out of a site's jobs.
//
// Run submits jobs to a driver, as a role does: a victim, and beside it jobs whose program tries
// what a hostile buyer would. It tells what stopped each attempt. The attempts do no harm where
// they succeed: they open, connect and send signal 0, and take a little more than they may.
package escape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Site is where the suite runs.
type Site struct {
	Agent   protocol.AgentID
	Root    string            // of the jobs' directories; the suite adds one, and removes it
	Users   []string          // accounts: the first is the victim's and the next buyer's, the last the attacker's
	Program []string          // an executable and the arguments, without the last, that call Try
	Files   map[string]string // what the agent alone may open, by the attempt's name
	Network bool              // jobs share the machine's network
}

// Result is one attempt.
type Result struct {
	Attempt   string `json:"attempt"`
	Succeeded bool   `json:"succeeded"`
	StoppedBy string `json:"stopped_by,omitempty"`
}

// The jobs of the suite, besides floods.
const (
	victims = "victim"
	attack  = "attack"
	looks   = "look"
)

const (
	slotLength = 5 * time.Minute
	patience   = time.Minute // for the end of a job beyond its slot
)

type bench struct {
	ctx     context.Context //nolint:containedctx // of one Run
	site    Site
	driver  queue.Driver
	slot    protocol.Slot
	dir     string
	arrived chan protocol.Body
}

// Run runs the suite. Errors: the jobs cannot be run.
func Run(ctx context.Context, d queue.Driver, site Site) (list []Result, err error) {
	if err := os.MkdirAll(site.Root, 0o711); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(site.Root, "isolation-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	start := time.Now().UTC().Truncate(time.Second).Add(2 * time.Second)
	b := &bench{
		ctx: ctx, site: site, driver: d, dir: dir, arrived: make(chan protocol.Body, 64),
		slot: protocol.Slot{Start: start, End: start.Add(slotLength), Cores: 2},
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(m protocol.Message) { // it ends with ctx
			select {
			case b.arrived <- m.Body:
			case <-ctx.Done():
			}
		})
	}()
	defer func() { cancel(); <-stopped }()
	return b.suite()
}

func (b *bench) id() string { return filepath.Base(b.dir) }

// suite reserves a core for the victim and one for the others, and runs them.
func (b *bench) suite() (list []Result, err error) {
	b.send(message.Reserve{ID: b.id(), Slot: b.slot})
	defer func() {
		b.send(message.Release{ID: b.id()})
		_, late := await[message.Released](b, func(message.Released) bool { return true })
		err = errors.Join(err, late)
	}()
	got, err := await[message.Reserved](b, func(message.Reserved) bool { return true })
	if err == nil && !got.OK {
		err = fmt.Errorf("the attempts need two free cores: %s: %s; repeat this when sold slots have ended", got.Reason.Code, got.Reason.Note)
	}
	if err != nil {
		return nil, err
	}
	victim, err := b.begin(victims, 0, map[string]string{"input": "/dev/null"}, "sleep", "600")
	if err != nil {
		return nil, err
	}
	defer func() {
		b.send(message.Signal{ID: victim.ID, Verb: message.SignalKill})
		_, late := b.end(victim)
		err = errors.Join(err, late)
	}()
	if list, err = b.attacks(victim); err != nil {
		return list, err
	}
	for i, name := range slices.Sorted(maps.Keys(floods())) {
		job, err := b.begin("flood-"+strconv.Itoa(i), floodMemory, nil, "/bin/sh", "-c", floods()[name])
		if err != nil {
			return list, err
		}
		status, err := b.end(job)
		if err != nil {
			return list, err
		}
		list = append(list, Result{Attempt: name, Succeeded: status.Success(), StoppedBy: told(job, status)})
	}
	return list, nil
}

// attacks runs the program that makes the attempts, and then another that looks for what
// it has left.
func (b *bench) attacks(victim message.Job) (list []Result, err error) {
	t := targets{Files: map[string]string{}, PIDs: map[string]int{"the agent": os.Getpid()}, Mark: b.id()}
	for name, path := range b.site.Files {
		if t.Files[name], err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	t.Files["read another job's input"] = filepath.Join(victim.Dir, "work", "input")
	for i, pid := range owned(victim.Dir) {
		t.PIDs["another job's process "+strconv.Itoa(i+1)] = pid
	}
	t.Space, _ = os.Readlink("/proc/self/ns/pid") // without it the numbers count for nothing
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer tcp.Close() //nolint:errcheck // nothing was accepted
	hidden, err := net.Listen("unix", "@"+t.Mark)
	if err != nil {
		return nil, err
	}
	defer hidden.Close() //nolint:errcheck // nothing was accepted
	t.TCP = tcp.Addr().String()
	for _, t.Look = range []bool{false, true} {
		found, err := b.try(t)
		if err != nil {
			return list, err
		}
		list = append(list, found...)
	}
	for _, path := range t.marks() {
		_ = os.Remove(path) // where a job could leave it
	}
	return list, nil
}

func (b *bench) try(t targets) (list []Result, err error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	name := attack
	if t.Look {
		name = looks
	}
	program := filepath.Base(b.site.Program[0])
	argv := append(append([]string{"./" + program}, b.site.Program[1:]...), string(text))
	job, err := b.begin(name, 0, map[string]string{program: b.site.Program[0]}, argv...)
	if err != nil {
		return nil, err
	}
	status, err := b.end(job)
	if err == nil && !status.Success() {
		err = fmt.Errorf("the job of the attempts ended as %s: %s", status.State, told(job, status))
	}
	if err != nil {
		return nil, err
	}
	out, err := os.ReadFile(filepath.Join(job.Dir, "stdout"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(out) {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("the job of the attempts printed %q: %w", line, err)
		}
		if b.site.Network && r.Succeeded && (r.Attempt == loopback || r.Attempt == abstract) {
			r.Succeeded, r.StoppedBy = false, "nothing: the site allows the network"
		}
		list = append(list, r)
	}
	return list, nil
}

// told is why a job failed; "" if it did not.
func told(job message.Job, s protocol.JobStatus) string {
	if s.Success() || s.Note != "" {
		return s.Note
	}
	said, _ := os.ReadFile(filepath.Join(job.Dir, "stderr")) // "" is as good
	return fmt.Sprintf("exit code %d: %s", s.Exit, queue.OneLine(said))
}

func (b *bench) send(body protocol.Body) {
	b.driver.Send(protocol.Message{Performative: protocol.Request, Sender: b.site.Agent, Protocol: protocol.ProtocolQueue, Body: body})
}

func await[B protocol.Body](b *bench, wanted func(B) bool) (none B, err error) {
	late := time.NewTimer(slotLength + patience)
	defer late.Stop()
	for {
		select {
		case body := <-b.arrived:
			if r, ok := body.(message.JobRefused); ok && r.Verb == "" && r.Reason.Code != protocol.CodeUnknown {
				return none, fmt.Errorf("job %s is refused: %s: %s", r.ID, r.Reason.Code, r.Reason.Note)
			}
			if m, ok := body.(B); ok && wanted(m) {
				return m, nil
			}
		case <-late.C:
			return none, errors.New("the batch system does not answer")
		case <-b.ctx.Done():
			return none, b.ctx.Err()
		}
	}
}

// begin starts a job with files, copies of others, and waits until it runs.
func (b *bench) begin(name string, room int64, files map[string]string, argv ...string) (message.Job, error) {
	job := message.Job{
		ID: b.id() + "." + name, Reservation: b.id(), Slot: b.slot, Argv: argv,
		Dir: filepath.Join(b.dir, name), Memory: room, FileSize: room / floodMemory * floodDisk,
	}
	job.Slot.Cores = 1
	if n := len(b.site.Users); n > 0 {
		job.User = b.site.Users[n-1]
		if name == victims || name == looks {
			job.User = b.site.Users[0]
		}
		if n > 1 { // as in a pool
			job.Home = filepath.Join(job.Dir, "tmp")
		}
	}
	err := os.Mkdir(job.Dir, 0o711)
	if err == nil {
		err = os.Mkdir(filepath.Join(job.Dir, "work"), 0o700)
	}
	for to, from := range files {
		err = errors.Join(err, duplicate(from, filepath.Join(job.Dir, "work", to)))
	}
	if err != nil {
		return job, err
	}
	timer := time.NewTimer(time.Until(b.slot.Start))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
		return job, b.ctx.Err()
	}
	b.send(message.Submit{Job: job})
	_, err = await(b, func(m message.JobChanged) bool { return m.ID == job.ID && m.Status.State != protocol.JobWaiting })
	return job, err
}

func (b *bench) end(job message.Job) (protocol.JobStatus, error) {
	b.send(message.JobQuery{Job: job})
	m, err := await(b, func(m message.JobChanged) bool { return m.ID == job.ID && m.Status.State.Over() })
	return m.Status, err
}

// owned lists the processes that a job's directory is an argument or a variable of.
func owned(dir string) (pids []int) {
	entries, _ := os.ReadDir("/proc") // without it nothing is found
	for _, e := range entries {
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // it may be gone
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && bytes.Contains(append(args, env...), []byte(dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
