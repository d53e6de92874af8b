package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ramp/protocol"
	"ramp/protocol/message"
)

// beginCollect reads the outputs of a job in the background, since they may be large.
// Repeated requests get one answer.
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
			d.report(answer)
		}
	})
}

// collect lists the files in a job's working directory, except unchanged inputs. It
// lists none if they exceed the limit, since half a result misleads.
func (d *Depot) collect(ctx context.Context, q message.Collect) message.Collected {
	job := q.Job
	if why, err := os.ReadFile(filepath.Join(d.dir(job), droppedFile)); err == nil {
		return message.Collected{Job: job, Why: string(why)}
	}
	if d.cfg.TakeBack != nil {
		if err := d.cfg.TakeBack(d.dir(job)); err != nil {
			d.cfg.Log.Warn("files: later jobs of its account can reach a job's files", "dir", d.dir(job), "err", err)
		}
	}
	c := collecting{inputs: map[string]protocol.StagedFile{}, most: d.cfg.Output}
	for _, f := range q.Inputs {
		c.inputs[f.Path] = f
	}
	root, err := os.OpenRoot(filepath.Join(d.dir(job), workDir))
	if err != nil {
		return message.Collected{Job: job, Why: "cannot read its outputs: " + err.Error()}
	}
	defer root.Close() //nolint:errcheck // only read
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && p != "." && !c.enter(p) {
			return fs.SkipDir
		}
		if c.entries++; c.entries > maxEntries {
			return excess(fmt.Sprintf("it left more than %d files and directories, the most that this site reads", maxEntries))
		}
		return errors.Join(ctx.Err(), c.take(root, p, e))
	})
	if errors.As(err, new(excess)) {
		err = errors.Join(err, d.drop(job, err.Error()))
	}
	if err != nil {
		return message.Collected{Job: job, Why: protocol.Words(err.Error())}
	}
	return message.Collected{Job: job, Outputs: c.files, Why: c.why()}
}

// excess says how outputs exceed what the site keeps.
type excess string

func (e excess) Error() string { return string(e) }

// droppedFile has the reason why a job's outputs were removed.
const droppedFile = "dropped"

// drop removes the outputs of a job at once; the disk is needed for others.
func (d *Depot) drop(job, why string) error {
	if err := os.WriteFile(filepath.Join(d.dir(job), droppedFile), []byte(protocol.Words(why)), 0o600); err != nil {
		return err
	}
	return removeTree(filepath.Join(d.dir(job), workDir))
}

// collecting is a walk over the outputs of a job.
type collecting struct {
	inputs map[string]protocol.StagedFile
	most   int64
	size   int64
	files  []protocol.StagedFile
	odd    int    // files left out
	first  string // why the first of them is

	entries int // that were visited
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
		return excess(fmt.Sprintf("its outputs exceed %d bytes, the most that this site keeps", c.most))
	case len(c.files) >= protocol.MaxStaged:
		return excess(fmt.Sprintf("its outputs exceed %d files, the most that this site keeps", protocol.MaxStaged))
	}
	c.files = append(c.files, f)
	return nil
}

// enter reports whether files below a directory can have valid names. A job may nest
// directories as deeply as it likes, and every lookup starts at the top.
func (c *collecting) enter(p string) bool {
	err := protocol.CheckPath(p)
	if err != nil {
		c.leave(err)
	}
	return err == nil
}

func (c *collecting) leave(why error) {
	if c.odd++; c.odd == 1 {
		c.first = why.Error()
	}
}

// read reads a regular file: not a link, a device, or a hard link to another file.
func (c *collecting) read(root *os.Root, p string) (protocol.StagedFile, error) {
	if err := protocol.CheckPath(p); err != nil {
		return protocol.StagedFile{}, err
	}
	file, info, err := openPlain(root, p)
	if err != nil {
		return protocol.StagedFile{}, err
	}
	defer file.Close()                                                         //nolint:errcheck // only read
	if c.most > 0 && info.Size() > c.most && info.Size() != c.inputs[p].Size { // refused without reading
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

// openPlain opens a regular file without other hard links, below a directory.
func openPlain(root *os.Root, p string) (*os.File, fs.FileInfo, error) {
	p = filepath.FromSlash(p)
	if info, err := root.Lstat(p); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%q is not a regular file", p)
	}
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", p)
	}
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			err = fmt.Errorf("%q has several hard links", p)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
