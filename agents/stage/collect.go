package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"ramp/protocol"
	"ramp/protocol/message"
)

// beginCollect reads what a job has left, beside other requests: it may be much.
// Asked again meanwhile, there is one answer.
func (d *Depot) beginCollect(ctx context.Context, q message.Collect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.collecting[q.Job] {
		return
	}
	d.collecting[q.Job] = true
	d.wg.Go(func() {
		select {
		case d.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		answer := d.collect(ctx, q)
		<-d.places
		d.mu.Lock()
		delete(d.collecting, q.Job)
		d.mu.Unlock()
		if ctx.Err() == nil {
			d.tell(answer)
		}
	})
}

// collect lists what a job has left in its working directory, but for inputs as
// they were. More than is allowed is not kept at all: half a result misleads.
func (d *Depot) collect(ctx context.Context, q message.Collect) message.Collected {
	job := q.Job
	c := collecting{inputs: map[string]protocol.StagedFile{}, most: d.cfg.Output}
	for _, f := range q.Inputs {
		c.inputs[f.Path] = f
	}
	root, err := os.OpenRoot(filepath.Join(d.dir(job), workDir))
	if err != nil {
		return message.Collected{Job: job, Why: "its outputs cannot be read: " + err.Error()}
	}
	defer root.Close() //nolint:errcheck // it is only read
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && p != "." && !c.enter(p) {
			return fs.SkipDir
		}
		if c.entries++; c.entries > maxEntries {
			return fmt.Errorf("it has left more than %d files and directories, which this site does not look at", maxEntries)
		}
		return errors.Join(ctx.Err(), c.take(root, p, e))
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

	entries int // that were looked at
}

func (c *collecting) take(root *os.Root, p string, e fs.DirEntry) error {
	if e.IsDir() {
		return nil
	}
	f, err := c.read(root, p)
	if err != nil {
		c.leave(err)
		return nil
	}
	if f.Same(c.inputs[p]) {
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

// enter reports whether files below a directory can be named. It may be as deep as its
// job likes, and every look down there begins at the top.
func (c *collecting) enter(p string) bool {
	err := protocol.CheckPath(p)
	if err != nil {
		c.leave(err)
	}
	return err == nil
}

// leave notes why something is left out.
func (c *collecting) leave(why error) {
	if c.odd++; c.odd == 1 {
		c.first = why.Error()
	}
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
	defer file.Close()                                                         //nolint:errcheck // it is only read
	if c.most > 0 && info.Size() > c.most && info.Size() != c.inputs[p].Size { // not worth reading: it is refused
		return protocol.StagedFile{Path: p, Size: info.Size()}, nil
	}
	f, err := describe(io.LimitReader(file, info.Size()), info, p)
	if err != nil {
		return protocol.StagedFile{}, fmt.Errorf("%q: %w", p, err)
	}
	return f, nil
}

func (c *collecting) why() string {
	if c.odd == 0 {
		return ""
	}
	are := "are"
	if c.odd == 1 {
		are = "is"
	}
	return protocol.Words(fmt.Sprintf("%d of its files %s left out: %s", c.odd, are, c.first))
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
