package stage

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Grant is what somebody may do with the files of a job.
type Grant struct {
	Job     string
	Staging bool // inputs may come
	Over    bool // the job prints no more
	Inputs  []protocol.StagedFile
	Outputs []protocol.StagedFile
}

// DepotConfig is where a site keeps the files of jobs.
type DepotConfig struct {
	Agent  protocol.AgentID
	Root   string // one directory per job is made below it
	Output int64  // most bytes of all that a job leaves; 0: no bound
	// Grant looks a launch up for whom it belongs to. Errors: a Refusal.
	Grant func(ctx context.Context, from protocol.AgentID, k Key) (Grant, error)
	Free  func(dir string) (int64, error) // bytes that can be written there; nil: as the system says
	Log   *slog.Logger
}

// Bounds of a depot.
const (
	maxRequests   = 4096     // wait for it; it drops more, and the role asks again
	maxCollecting = 2        // jobs whose outputs are read at once
	maxEntries    = 1 << 20  // files, links and directories of a job that are looked at
	spare         = 64 << 20 // bytes of the disk that inputs leave free: the agent's journal may be there
)

// Depot keeps the files of a site's jobs. It is the role's correspondent for them,
// and serves those whose jobs they are.
type Depot struct {
	cfg      DepotConfig
	requests chan protocol.Message
	deliver  func(m protocol.Message)

	places chan struct{} // of those that collect
	wg     sync.WaitGroup

	mu         sync.Mutex
	busy       map[string]bool // files that are being written, by job and path
	collecting map[string]bool // jobs whose outputs are being read
	tallies    map[string]*tally
}

// NewDepot makes a Depot; Run lets it answer the role.
func NewDepot(cfg DepotConfig) *Depot {
	if cfg.Free == nil {
		cfg.Free = freeOf
	}
	return &Depot{
		cfg: cfg, requests: make(chan protocol.Message, maxRequests), places: make(chan struct{}, maxCollecting),
		busy: map[string]bool{}, collecting: map[string]bool{}, tallies: map[string]*tally{},
	}
}

// Directories of a job; a driver adds more.
const (
	workDir = "work" // where it runs
	partDir = "part" // inputs that are not whole yet
)

func (d *Depot) dir(job string) string { return filepath.Join(d.cfg.Root, job) }

// Send queues a request of the role and returns at once.
func (d *Depot) Send(m protocol.Message) {
	select {
	case d.requests <- m:
	default:
		d.cfg.Log.Warn("files: too many requests wait, one is dropped", "kind", m.Body.Kind(), "waiting", maxRequests)
	}
}

// Run answers the role until ctx is done.
func (d *Depot) Run(ctx context.Context, deliver func(m protocol.Message)) {
	d.mu.Lock()
	d.deliver = deliver
	d.mu.Unlock()
	defer d.wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-d.requests:
			d.answer(ctx, m)
		}
	}
}

func (d *Depot) answer(ctx context.Context, m protocol.Message) {
	switch r := m.Body.(type) {
	case message.Prepare:
		d.tell(d.prepare(r))
	case message.Collect:
		d.beginCollect(ctx, r)
	case message.Discard:
		d.discard(r.Job)
	default:
		d.cfg.Log.Warn("files: a request that is not known is dropped", "kind", m.Body.Kind())
	}
}

func (d *Depot) tell(body protocol.Body) {
	d.mu.Lock()
	deliver := d.deliver
	d.mu.Unlock()
	if deliver == nil {
		return
	}
	deliver(protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{d.cfg.Agent},
		Protocol: protocol.ProtocolQueue, Body: body,
	})
}

// prepare makes a job's directories and counts the inputs that are not there.
func (d *Depot) prepare(p message.Prepare) message.Prepared {
	if !filepath.IsLocal(p.Job) || filepath.Base(p.Job) != p.Job {
		return message.Prepared{Job: p.Job, Why: "the job has no name for a directory"}
	}
	dir := d.dir(p.Job)
	// Others may pass through to what they own below, and list nothing.
	err := errors.Join(os.MkdirAll(d.cfg.Root, 0o711), os.MkdirAll(dir, 0o711),
		os.MkdirAll(filepath.Join(dir, workDir), 0o700), os.MkdirAll(filepath.Join(dir, partDir), 0o700))
	if err != nil {
		return message.Prepared{Job: p.Job, Why: "no place for its files: " + err.Error()}
	}
	missing, err := d.missing(p.Job, p.Inputs)
	if err != nil {
		return message.Prepared{Job: p.Job, Why: err.Error()}
	}
	d.forget(p.Job) // what was counted before may be wrong
	return message.Prepared{Job: p.Job, Missing: len(missing)}
}

// missing lists the inputs that are not whole. What is in the working directory
// before the job runs was put there whole.
func (d *Depot) missing(job string, inputs []protocol.StagedFile) (paths []string, err error) {
	root, err := os.OpenRoot(filepath.Join(d.dir(job), workDir))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it is only read
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
		d.cfg.Log.Error("files: a job's directory cannot be removed", "dir", d.dir(job), "err", err)
	}
}
