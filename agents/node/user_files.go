package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/agents/stage"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// carry lets the agent bring inputs to sites.
func (n *Node) carry() {
	p := stage.NewPorter(n.Cred.ID, func(ctx context.Context, to protocol.AgentID) (stage.Stream, error) {
		return n.Mesh.OpenFiles(ctx, to)
	}, func(m protocol.Message) { _ = n.Runner.Deliver(m) }, n.Log) // the role has stopped: so has the agent
	n.files, n.porter = p.Send, p
}

// InputsOf are the files that --in names, described.
func InputsOf(paths []string) ([]message.RunInput, error) {
	var list []message.RunInput
	for _, p := range paths {
		source, to := SourceOf(p)
		found, err := inputsBelow(source, to)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "", "--in %s: %w", p, err)
		}
		list = append(list, found...)
	}
	if len(list) > protocol.MaxStaged {
		return nil, exit.Fail(exit.Usage, "pack them into an archive", "--in: %d files: want at most %d", len(list), protocol.MaxStaged)
	}
	files := make([]protocol.StagedFile, len(list))
	for i, in := range list {
		files[i] = in.File
	}
	if err := protocol.CheckTree(files); err != nil {
		return nil, exit.Fail(exit.Usage, "--in PATH=NAME gives a file another name", "--in: %w", err)
	}
	return list, nil
}

// SourceOf splits PATH=NAME. A path may have such signs itself (lr=0.1/data.csv), so
// the longest that is there is the path; if none is, the first sign ends it.
func SourceOf(p string) (source, name string) {
	for end := len(p); end > 0; end = strings.LastIndexByte(p[:end], '=') {
		if _, err := os.Lstat(p[:end]); err != nil {
			continue
		}
		if end == len(p) {
			return p, filepath.Base(filepath.Clean(p))
		}
		return p[:end], p[end+1:]
	}
	source, name, named := strings.Cut(p, "=")
	if !named {
		name = filepath.Base(filepath.Clean(source))
	}
	return source, name
}

// inputsBelow is a file, or every file of a directory.
func inputsBelow(source, to string) ([]message.RunInput, error) {
	abs, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	var list []message.RunInput
	err = filepath.WalkDir(abs, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if path != abs && !e.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		rest, err := filepath.Rel(abs, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(to, rest))
		if err := protocol.CheckPath(name); err != nil {
			return err
		}
		f, err := stage.Describe(path, name)
		list = append(list, message.RunInput{File: f, Source: path})
		return err
	})
	return list, err
}

// OutDir is where the outputs of a unit are written to. The indexes of an array have
// directories of their own.
func OutDir(dir string, run message.Run, unit int) string {
	if len(run.Units) == 1 || run.Program.Array {
		return dir
	}
	return filepath.Join(dir, fmt.Sprintf("unit-%d", unit+1))
}

// Fetchable are the runs that are over and whose outputs some site still keeps.
func Fetchable(runs []message.Run, now time.Time) (list []message.Run) {
	for _, r := range runs {
		if r.Over && slices.ContainsFunc(r.Units, func(u message.RunUnit) bool {
			return len(r.Program.Wanted(u)) > 0 && u.Status.Keep.After(now)
		}) {
			list = append(list, r)
		}
	}
	return list
}

// outRoot opens a directory to write to; it is made if it is not there. That a file can
// be made in it is tried: whoever may open a directory may not write to it yet.
func outRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, ".ramp-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// CheckOut makes sure that what a program leaves can be written down, before anything
// is bought for it.
func CheckOut(dir string) error {
	if dir == "" {
		return nil
	}
	root, err := outRoot(dir)
	if err == nil {
		err = root.Close()
	}
	if err != nil {
		return exit.Fail(exit.Usage, "", "--out: %w", err)
	}
	return nil
}

// unwritten tells what a file of this machine is at fault for, such as a disk that is
// full, from what the site is.
func unwritten(id string, err error) error {
	if !stage.Ours(err) {
		return err
	}
	return exit.Fail(exit.Failed, "'ramp fetch "+id+" --out DIR' continues the transfer", "%w", err)
}

func fetchUnit(ctx context.Context, open func(context.Context, protocol.AgentID) (stage.Stream, error), run message.Run, u message.RunUnit, dir string) error {
	root, err := outRoot(dir)
	if err != nil {
		return exit.Fail(exit.Usage, "'ramp fetch "+run.ID+" --out DIR' writes them elsewhere", "%w", err)
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	contract, unit := run.Bought(u)
	k := stage.Key{Contract: contract, Unit: unit, Launch: u.Launch}
	return stage.Exchange(ctx, open, u.Seller, func(s stage.Stream) error {
		for _, f := range run.Program.Wanted(u) {
			if err := stage.Get(s, k, f, root); err != nil {
				return unwritten(run.ID, fmt.Errorf("%s: %w", f.Path, err))
			}
		}
		return nil
	})
}

func (u userRuns) open(ctx context.Context, to protocol.AgentID) (stage.Stream, error) {
	s, err := u.mesh.OpenFiles(ctx, to)
	if errors.Is(err, mesh.ErrUnreached) {
		err = exit.Fail(exit.Unreachable, askHint, "%s cannot be reached", to.Name())
	}
	return s, err
}

// logWriter sends what is written as pieces of one stream.
type logWriter struct {
	name string
	send func(control.LogLine) error
}

func (l logWriter) Write(b []byte) (int, error) {
	if err := l.send(control.LogLine{Stream: l.name, Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (u userRuns) log(ctx context.Context, q control.RunCall, send func(control.LogLine) error) error {
	run, err := u.showRun(ctx, q)
	if err != nil {
		return err
	}
	unit, err := RunUnit(run, q.Unit)
	if err != nil {
		return err
	}
	if !q.Follow && unit.Status.Stage == message.StageFailed {
		return exit.Fail(exit.Nothing, "", "nothing was printed: %s", UnitWords(unit))
	}
	t := tailing{u: u, q: q, run: run, unit: unit, stdout: logWriter{"stdout", send}, stderr: logWriter{"stderr", send}}
	if err := t.follow(ctx); err != nil && ctx.Err() == nil {
		return exit.WithCode(exit.Unreachable, err)
	}
	return nil
}

// tailing follows what a unit prints across broken connections.
type tailing struct {
	u              userRuns
	q              control.RunCall
	run            message.Run
	unit           message.RunUnit
	out, errs      int64
	stdout, stderr io.Writer
}

// follow goes on until the log has ended. Before its site has the launch there is nothing to read.
func (t *tailing) follow(ctx context.Context) error {
	rest := time.NewTicker(protocol.RetryFirst / 2)
	defer rest.Stop()
	for tries := 0; ; tries++ {
		if t.unit.Status.Stage != message.StageAsked {
			if err := t.once(ctx); !t.q.Follow || ctx.Err() != nil || err == nil && !t.moved(ctx) {
				return err
			}
		} else if tries = 0; !t.q.Follow {
			return nil
		}
		select {
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := t.look(ctx); err != nil || t.unit.Status.Stage == message.StageFailed {
			return err
		}
		if t.unit.Status.Stage.Over() && tries > overTries {
			return errors.New("its site returned no output for this job")
		}
	}
}

// look reads how the unit stands. One that was bought again prints from the start.
func (t *tailing) look(ctx context.Context) error {
	run, err := t.u.showRun(ctx, t.q)
	if err != nil {
		return err
	}
	before := t.unit.Launch
	t.run = run
	if t.unit, err = RunUnit(run, t.unit.Unit+1); t.unit.Launch != before {
		t.out, t.errs = 0, 0
	}
	return err
}

// moved reports whether a log has ended because its unit is bought again.
func (t *tailing) moved(ctx context.Context) bool {
	before := t.unit.Launch
	return t.look(ctx) == nil && (t.unit.Lost || t.unit.Launch != before)
}

// overTries is how often a site is asked for the log of a job that has ended.
const overTries = 40

func (t *tailing) once(ctx context.Context) error {
	contract, unit := t.run.Bought(t.unit)
	k := stage.Key{Contract: contract, Unit: unit, Launch: t.unit.Launch}
	err := stage.Exchange(ctx, t.u.open, t.unit.Seller, func(s stage.Stream) error {
		return stage.Log(s, k, &t.out, &t.errs, t.q.Follow, t.stdout, t.stderr)
	})
	if errors.Is(err, stage.ErrKept) {
		_, err = fmt.Fprintf(t.stderr, "ramp: %s; then 'ramp user logs %s' shows it\n", err, t.q.ID)
	}
	return err
}

// fetch writes what a run has left to a directory.
func (u userRuns) fetch(ctx context.Context, q control.RunCall) (message.Run, error) {
	run, err := u.showRun(ctx, q)
	switch {
	case err != nil:
		return run, err
	case !run.Over && slices.ContainsFunc(run.Units, withheld):
		return run, exit.Fail(exit.Nothing, "", "the outputs of %s are not here yet: %s", q.ID, run.Units[slices.IndexFunc(run.Units, withheld)].Status.Why)
	case !run.Over:
		return run, exit.Fail(exit.Nothing, "'ramp logs -f "+q.ID+"' follows it", "%s has not ended: it is %s", q.ID, run.State)
	case !filepath.IsAbs(q.Dir):
		return run, exit.Fail(exit.Usage, "", "directory %q: want an absolute path", q.Dir)
	case q.Unit != 0:
		if _, err := RunUnit(run, q.Unit); err != nil {
			return run, err
		}
	}
	why, some := "", false
	for _, unit := range run.Units {
		if q.Unit > 0 && unit.Unit != q.Unit-1 {
			continue
		}
		if len(unit.Status.Outputs) == 0 {
			why = cmp.Or(why, unit.Status.Why)
			continue
		}
		some = true
		if now := time.Now(); !unit.Status.Keep.After(now) {
			return run, exit.Fail(exit.Nothing, "", "%s kept the outputs of %s until %s", unit.Resource, q.ID, words.At(unit.Status.Keep))
		}
		if err := fetchUnit(ctx, u.open, run, unit, OutDir(q.Dir, run, unit.Unit)); err != nil {
			return run, unfetched(q.ID, unit.Unit, err)
		}
	}
	if why != "" && !some {
		return run, exit.Fail(exit.Nothing, "", "%s left nothing that can be fetched: %s", q.ID, why)
	}
	return run, nil
}

// unfetched says what can be done about outputs that did not come: the site was not
// reached, or they cannot be written here.
func unfetched(id string, unit int, err error) error {
	var here *exit.Error
	if errors.As(err, &here) {
		return exit.Fail(here.Code, here.Hint, "outputs of unit %d: %w", unit+1, err)
	}
	return exit.Fail(exit.Unreachable, "'ramp fetch "+id+" --out DIR' continues the transfer", "outputs of unit %d: %w", unit+1, err)
}
