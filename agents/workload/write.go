package workload

import (
	"bufio"
	"io"
	"strconv"
)

// WriteSWF writes the log in the Standard Workload Format: the comments, then a
// line of eighteen fields for every job. ReadSWF reads the same log back.
func WriteSWF(w io.Writer, l *Log) error {
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
