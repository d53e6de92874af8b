package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Grant is an agent's access to the files of a job.
type Grant struct {
	Job     string
	Staging bool // inputs may arrive
	Over    bool // the job has ended
	Head    bool // only the first logHead bytes of its output are delivered yet
	Inputs  []protocol.StagedFile
	Outputs []protocol.StagedFile
}

// DepotConfig configures a site's storage of jobs' files.
type DepotConfig struct {
	Agent  protocol.AgentID
	Root   string // contains one directory per job
	Output int64  // limit for a job's outputs in bytes; 0: no limit
	// Grant looks up an agent's access to its launch. Errors: a Refusal.
	Grant func(ctx context.Context, from protocol.AgentID, k Key) (Grant, error)
	// Known reports whether a job's launch is remembered; nil: nothing is swept.
	Known func(ctx context.Context, job string) bool
	// TakeBack takes a job's files from the account that it ran as; nil: they are the agent's.
	TakeBack func(dir string) error
	Free     func(dir string) (int64, error) // free bytes; nil: as the system reports
	Log      *slog.Logger
}

// Bounds of a depot.
const (
	maxRequests   = 4096     // that wait; more are dropped, and the role asks again
	maxCollecting = 2        // jobs whose outputs are read at once
	maxEntries    = 1 << 20  // files, links and directories that a job may leave
	spare         = 64 << 20 // bytes of the disk that inputs leave free, for instance for the agent's journal
)

// Depot owns the files of a site's jobs. It is the role's correspondent for files, and
// serves them to the jobs' owners.
type Depot struct {
	cfg      DepotConfig
	requests chan *protocol.Message // pointers: room for maxRequests messages would take 0.6 MB
	deliver  func(m protocol.Message)

	places chan struct{} // one for each running collection
	wg     sync.WaitGroup

	mu         sync.Mutex
	busy       map[string]bool // files being written, by job and path
	collecting map[string]bool // jobs whose outputs are being read
	tallies    map[string]*tally
}

// NewDepot makes a Depot; Run lets it answer the role.
func NewDepot(cfg DepotConfig) *Depot {
	if cfg.Free == nil {
		cfg.Free = freeOf
	}
	return &Depot{
		cfg: cfg, requests: make(chan *protocol.Message, maxRequests), places: make(chan struct{}, maxCollecting),
		busy: map[string]bool{}, collecting: map[string]bool{}, tallies: map[string]*tally{},
	}
}

// Directories of a job; a driver adds more.
const (
	workDir = "work"  // its working directory
	partDir = "part"  // incomplete inputs
	ownFile = "agent" // names the agent that made the directory: several may share a root
)

func (d *Depot) dir(job string) string { return filepath.Join(d.cfg.Root, job) }

// Send queues a request of the role and returns at once.
func (d *Depot) Send(m protocol.Message) {
	select {
	case d.requests <- &m:
	default:
		d.cfg.Log.Warn("files: dropped a request because too many wait", "kind", m.Body.Kind(), "waiting", maxRequests)
	}
}

// Run answers the role until ctx is done.
func (d *Depot) Run(ctx context.Context, deliver func(m protocol.Message)) {
	d.mu.Lock()
	d.deliver = deliver
	d.mu.Unlock()
	defer d.wg.Wait()
	d.sweep(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-d.requests:
			d.answer(ctx, *m)
		}
	}
}

// sweep removes the directories of launches that the agent has forgotten: it may have
// crashed before it discarded them.
func (d *Depot) sweep(ctx context.Context) {
	if d.cfg.Known == nil {
		return
	}
	entries, _ := os.ReadDir(d.cfg.Root) // without it there is nothing to sweep
	for _, e := range entries {
		owner, err := os.ReadFile(filepath.Join(d.dir(e.Name()), ownFile))
		if err == nil && string(owner) == string(d.cfg.Agent) && !d.cfg.Known(ctx, e.Name()) && ctx.Err() == nil {
			d.discard(e.Name())
		}
	}
}

func (d *Depot) answer(ctx context.Context, m protocol.Message) {
	switch r := m.Body.(type) {
	case message.Prepare:
		d.report(d.prepare(r))
	case message.Collect:
		d.beginCollect(ctx, r)
	case message.Discard:
		d.discard(r.Job)
	default:
		d.cfg.Log.Warn("files: dropped an unknown request", "kind", m.Body.Kind())
	}
}

func (d *Depot) report(body protocol.Body) {
	d.mu.Lock()
	deliver := d.deliver
	d.mu.Unlock()
	if deliver == nil {
		return
	}
	deliver(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{d.cfg.Agent}, Protocol: protocol.ProtocolQueue, Body: body})
}

// prepare makes a job's directories and counts the missing inputs.
func (d *Depot) prepare(p message.Prepare) message.Prepared {
	if !filepath.IsLocal(p.Job) || filepath.Base(p.Job) != p.Job {
		return message.Prepared{Job: p.Job, Why: "the job's ID cannot name a directory"}
	}
	dir := d.dir(p.Job)
	// Others may enter the directories to reach their own files, and list nothing.
	err := errors.Join(os.MkdirAll(d.cfg.Root, 0o711), os.MkdirAll(dir, 0o711),
		os.MkdirAll(filepath.Join(dir, workDir), 0o700), os.MkdirAll(filepath.Join(dir, partDir), 0o700),
		os.WriteFile(filepath.Join(dir, ownFile), []byte(d.cfg.Agent), 0o600))
	if err != nil {
		return message.Prepared{Job: p.Job, Why: "cannot make its directories: " + err.Error()}
	}
	missing, err := d.missing(p.Job, p.Inputs)
	if err != nil {
		return message.Prepared{Job: p.Job, Why: err.Error()}
	}
	d.forget(p.Job) // an earlier count may be wrong
	return message.Prepared{Job: p.Job, Missing: len(missing)}
}

// missing lists the incomplete inputs. Before the job runs, every file in the working
// directory is complete.
func (d *Depot) missing(job string, inputs []protocol.StagedFile) (paths []string, err error) {
	root, err := os.OpenRoot(filepath.Join(d.dir(job), workDir))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	for _, f := range inputs {
		info, err := root.Lstat(filepath.FromSlash(f.Path))
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			paths = append(paths, f.Path)
		}
	}
	return paths, nil
}

func (d *Depot) discard(job string) {
	d.forget(job)
	if !filepath.IsLocal(job) || filepath.Base(job) != job {
		return
	}
	if err := removeTree(d.dir(job)); err != nil {
		d.cfg.Log.Error("files: cannot remove a job's directory", "dir", d.dir(job), "err", err)
	}
}

// removeTree removes a directory with a job's files. The job may have nested directories
// deeper than files can be open, or removed their write permission, so removeTree uses
// the system's commands.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		_ = exec.Command("chmod", "-R", "u+rwx", "--", dir).Run() // rm reports what is left
	}
	said, err := exec.Command("rm", "-rf", "--", dir).CombinedOutput()
	if err != nil {
		first, _, _ := bytes.Cut(said, []byte("\n"))
		return fmt.Errorf("rm: %w: %.300s", err, first)
	}
	return nil
}
