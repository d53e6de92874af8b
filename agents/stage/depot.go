package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"

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
	Log   *slog.Logger
}

// maxRequests wait for a depot; it drops more, and the role asks again.
const maxRequests = 4096

// Depot keeps the files of a site's jobs. It is the role's correspondent for them,
// and serves those whose jobs they are.
type Depot struct {
	cfg      DepotConfig
	requests chan protocol.Message
	deliver  func(m protocol.Message)

	mu     sync.Mutex
	busy   map[string]bool                  // files that are being written, by job and path
	inputs map[string][]protocol.StagedFile // of jobs that are prepared
}

// NewDepot makes a Depot; Run lets it answer the role.
func NewDepot(cfg DepotConfig) *Depot {
	return &Depot{
		cfg: cfg, requests: make(chan protocol.Message, maxRequests), busy: map[string]bool{},
		inputs: map[string][]protocol.StagedFile{},
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
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-d.requests:
			d.answer(m)
		}
	}
}

func (d *Depot) answer(m protocol.Message) {
	switch r := m.Body.(type) {
	case message.Prepare:
		d.tell(d.prepare(r))
	case message.Collect:
		d.tell(d.collect(r.Job))
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
	d.mu.Lock()
	d.inputs[p.Job] = p.Inputs
	d.mu.Unlock()
	missing, err := d.missing(p.Job, p.Inputs)
	if err != nil {
		return message.Prepared{Job: p.Job, Why: err.Error()}
	}
	return message.Prepared{Job: p.Job, Missing: missing}
}

// missing counts the inputs that are not whole. What is in the working directory
// before the job runs was put there whole.
func (d *Depot) missing(job string, inputs []protocol.StagedFile) (int, error) {
	root, err := os.OpenRoot(filepath.Join(d.dir(job), workDir))
	if err != nil {
		return 0, err
	}
	defer root.Close() //nolint:errcheck // it is only read
	n := 0
	for _, f := range inputs {
		info, err := root.Lstat(filepath.FromSlash(f.Path))
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			n++
		}
	}
	return n, nil
}

func (d *Depot) discard(job string) {
	if !filepath.IsLocal(job) || filepath.Base(job) != job {
		return
	}
	d.mu.Lock()
	delete(d.inputs, job)
	d.mu.Unlock()
	if err := os.RemoveAll(d.dir(job)); err != nil {
		d.cfg.Log.Error("files: a job's directory cannot be removed", "dir", d.dir(job), "err", err)
	}
}

// collect lists what a job has left in its working directory, but for inputs as
// they were. More than is allowed is not kept at all: half a result misleads.
func (d *Depot) collect(job string) message.Collected {
	c := collecting{inputs: map[string]protocol.StagedFile{}, most: d.cfg.Output}
	d.mu.Lock()
	for _, f := range d.inputs[job] {
		c.inputs[f.Path] = f
	}
	d.mu.Unlock()
	root, err := os.OpenRoot(filepath.Join(d.dir(job), workDir))
	if err != nil {
		return message.Collected{Job: job, Why: "its outputs cannot be read: " + err.Error()}
	}
	defer root.Close() //nolint:errcheck // it is only read
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return c.take(root, p, e)
	})
	if err != nil {
		return message.Collected{Job: job, Why: protocol.Words(err.Error())}
	}
	return message.Collected{Job: job, Outputs: c.files, Why: c.why()}
}

// collecting is a walk over what a job has left.
type collecting struct {
	inputs map[string]protocol.StagedFile
	most   int64
	size   int64
	files  []protocol.StagedFile
	odd    int    // what is left out
	first  string // and why the first of it is
}

func (c *collecting) take(root *os.Root, p string, e fs.DirEntry) error {
	if e.IsDir() {
		return nil
	}
	f, err := c.read(root, p)
	if err != nil {
		if c.odd++; c.odd == 1 {
			c.first = err.Error()
		}
		return nil
	}
	if f == c.inputs[p] {
		return nil
	}
	c.size += f.Size
	switch {
	case c.most > 0 && c.size > c.most:
		return fmt.Errorf("its outputs are more than %d bytes, which this site does not keep", c.most)
	case len(c.files) >= protocol.MaxStaged:
		return fmt.Errorf("its outputs are more than %d files, which this site does not keep", protocol.MaxStaged)
	}
	c.files = append(c.files, f)
	return nil
}

// read reads a file that is one: no link, no device, no second name of another.
func (c *collecting) read(root *os.Root, p string) (protocol.StagedFile, error) {
	if err := protocol.CheckPath(p); err != nil {
		return protocol.StagedFile{}, err
	}
	file, info, err := openPlain(root, p)
	if err != nil {
		return protocol.StagedFile{}, err
	}
	defer file.Close()                      //nolint:errcheck // it is only read
	if c.most > 0 && info.Size() > c.most { // not worth reading: it is refused
		return protocol.StagedFile{Path: p, Size: info.Size()}, nil
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(file, info.Size()))
	if err != nil {
		return protocol.StagedFile{}, fmt.Errorf("%q: %w", p, err)
	}
	return protocol.StagedFile{Path: p, Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Exec: info.Mode()&0o100 != 0}, nil
}

func (c *collecting) why() string {
	if c.odd == 0 {
		return ""
	}
	return protocol.Words(fmt.Sprintf("%d of its files are left out: %s", c.odd, c.first))
}

// openPlain opens a regular file that has one name only, below a directory.
func openPlain(root *os.Root, p string) (*os.File, fs.FileInfo, error) {
	p = filepath.FromSlash(p)
	if info, err := root.Lstat(p); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%q is no plain file", path.Base(p))
	}
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is no plain file", path.Base(p))
	}
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			err = fmt.Errorf("%q is a second name of another file", path.Base(p))
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
