package background

import (
	"os"

	"golang.org/x/sys/unix"

	"ramp/agents/exit"
)

// maxLog bounds a log, in bytes; one older log is kept beside it.
const maxLog = 4 << 20

const older = ".1"

// Log is a log file of bounded size. Standard error goes there too, so that a crash leaves
// its trace. It has one writer at a time, as slog's handlers do.
type Log struct {
	path string
	file *os.File
	size int64
}

// OpenLog opens a log, and makes it the standard error of this process.
func OpenLog(path string) (*Log, error) {
	l := &Log{path: path}
	if err := l.open(); err != nil {
		return nil, exit.Fail(exit.Failed, exit.PlaceHint(err), "log: %w", err)
	}
	return l, nil
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = unix.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return err
	}
	if l.file != nil {
		_ = l.file.Close() // every write went to the system at once
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends to the log. A log that would grow beyond its bound becomes the older one; if
// it cannot, it is emptied.
func (l *Log) Write(b []byte) (int, error) {
	if l.size > 0 && l.size+int64(len(b)) > maxLog {
		if os.Rename(l.path, l.path+older) != nil || l.open() != nil {
			if err := l.file.Truncate(0); err != nil {
				return 0, err
			}
			l.size = 0
		}
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	return n, err
}
