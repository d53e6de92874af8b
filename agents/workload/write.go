package workload

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteSWF writes the log in the Standard Workload Format: the comments, then a
// line of eighteen fields for every job. ReadSWF reads the same log back. If it could
// not, because of a line break in a comment or a bound of a log, WriteSWF writes nothing
// and returns an error that wraps ErrFormat.
func WriteSWF(w io.Writer, l *Log) error {
	if err := l.writable(); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	for _, c := range l.Comments {
		_, _ = b.WriteString(";" + c + "\n") // the writer keeps the first error for Flush
	}
	var line []byte
	for i := range l.Jobs {
		line = appendJob(line[:0], &l.Jobs[i])
		_, _ = b.Write(line) // likewise
	}
	return b.Flush()
}

// WriteGzip writes the log like WriteSWF, compressed. Equal logs give equal bytes.
func WriteGzip(w io.Writer, l *Log) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := WriteSWF(z, l); err != nil {
		return err
	}
	return z.Close()
}

// writable reports whether ReadSWF would accept the log.
func (l *Log) writable() error {
	if len(l.Jobs) > MaxJobs || len(l.Comments) > MaxComments {
		return fmt.Errorf("write: %d jobs and %d comments, want at most %d and %d: %w", len(l.Jobs), len(l.Comments), MaxJobs, MaxComments, ErrFormat)
	}
	all := 0
	for i, c := range l.Comments {
		all += len(c)
		if strings.Contains(c, "\n") || len(c) > MaxLine-2 || all > MaxRemarks {
			return fmt.Errorf("write: comment %d: want one line of at most %d bytes, and at most %d in total: %w", i+1, MaxLine-2, MaxRemarks, ErrFormat)
		}
	}
	return nil
}

func appendJob(line []byte, j *Job) []byte {
	v := [fields]int64{
		int64(j.Number), j.Submit, int64(j.Wait), int64(j.Run), int64(j.Procs),
		0, j.Memory, int64(j.RequestedProcs), int64(j.RequestedTime), j.RequestedMem,
		int64(j.Status), int64(j.User), int64(j.Group), int64(j.Executable),
		int64(j.Queue), int64(j.Partition), int64(j.Preceding), int64(j.Think),
	}
	for i, n := range v {
		if i > 0 {
			line = append(line, ' ')
		}
		if i == cpuField {
			line = strconv.AppendFloat(line, j.CPU, 'f', -1, 64)
			continue
		}
		line = strconv.AppendInt(line, n, 10)
	}
	return append(line, '\n')
}
