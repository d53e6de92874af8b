package workload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/agents/workload"
)

const line = "7 100 20 3600 16 12.5 2048 32 7200 4096 1 3 4 5 6 8 9 10"

var lineJob = workload.Job{
	Number: 7, Submit: 100, Wait: 20, Run: 3600, Procs: 16, CPU: 12.5, Memory: 2048,
	RequestedProcs: 32, RequestedTime: 7200, RequestedMem: 4096, Status: workload.StatusCompleted,
	User: 3, Group: 4, Executable: 5, Queue: 6, Partition: 8, Preceding: 9, Think: 10,
}

func TestReadSWF(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want workload.Log
	}{
		"all eighteen fields are kept": {line, workload.Log{Jobs: []workload.Job{lineJob}}},
		"blanks, tabs and carriage returns separate": {
			"  " + strings.ReplaceAll(line, " ", "\t ") + " \r\n\r\n\n", workload.Log{Jobs: []workload.Job{lineJob}},
		},
		"comments are kept in order, wherever they stand": {
			"; Version: 2.2\n;\n" + line + "\n;  MaxProcs: 12\n",
			workload.Log{Comments: []string{" Version: 2.2", "", "  MaxProcs: 12"}, Jobs: []workload.Job{lineJob}},
		},
		"an empty text is an empty log": {"", workload.Log{}},
		"a submit time of -1 is kept": {
			strings.Replace(line, " 100 ", " -1 ", 1),
			workload.Log{Jobs: []workload.Job{func() workload.Job { j := lineJob; j.Submit = -1; return j }()}},
		},
		"odd fields that are not needed count as unknown": {
			"7 100 20 3600 16 NaN 99999999999999999999 4294967295 UNLIMITED many 265 3 4 5 batch 8 9 10",
			workload.Log{Jobs: []workload.Job{func() workload.Job {
				j := lineJob
				j.CPU, j.Memory, j.RequestedProcs, j.RequestedTime, j.RequestedMem, j.Status, j.Queue = -1, -1, -1, -1, -1, -1, -1
				return j
			}()}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := workload.ReadSWF(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadSWFRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a missing field":             {line + "\n" + line[:len(line)-3], "line 2: 17 fields, want 18"},
		"a field too many":            {"; a comment\n" + line + " 5", "line 2: more than 18 fields"},
		"a word":                      {strings.Replace(line, "3600", "long", 1), `line 1: field 4 (run time) is "long"`},
		"a fraction but in CPU time":  {strings.Replace(line, "3600", "36.5", 1), `field 4 (run time) is "36.5"`},
		"a number beyond 32 bits":     {strings.Replace(line, "3600", "2147483648", 1), `field 4 (run time) is "2147483648"`},
		"a number beyond 64 bits":     {strings.Replace(line, "3600", "99999999999999999999", 1), "field 4 (run time)"},
		"a submit time out of bounds": {strings.Replace(line, " 100 ", " 9999999999999 ", 1), "field 2 (submit time)"},
		"a lone minus sign":           {strings.Replace(line, "3600", "-", 1), `field 4 (run time) is "-"`},
		"an endless line":             {line + "\n" + strings.Repeat("1 ", workload.MaxLine), "line 2: longer than 65536 bytes"},
		"endless comments":            {strings.Repeat(";\n", workload.MaxComments+1), "line 4097: more than 4096 comment lines"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.ReadSWF(strings.NewReader(c.text))
			if !errors.Is(err, workload.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrFormat with %q", err, c.want)
			}
		})
	}
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPlainUnpacksWhatIsPacked(t *testing.T) {
	text := "; MaxProcs: 5\n" + line + "\n"
	for name, in := range map[string][]byte{"plain": []byte(text), "packed": packed(t, text), "empty": nil} {
		r, err := workload.Plain(bytes.NewReader(in))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		log, err := workload.ReadSWF(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := min(len(in), 1); len(log.Jobs) != want {
			t.Errorf("%s: %d jobs, want %d", name, len(log.Jobs), want)
		}
	}
}

func TestTruncatedGzipIsRefused(t *testing.T) {
	in := packed(t, strings.Repeat(line+"\n", 1000))
	r, err := workload.Plain(bytes.NewReader(in[:len(in)-9]))
	if err != nil {
		t.Fatal(err)
	}
	_, err = workload.ReadSWF(r)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "line ") {
		t.Errorf("got %v, want an unexpected end with its line", err)
	}
	if _, err := workload.Plain(bytes.NewReader(in[:3])); err == nil {
		t.Error("a gzip file of three bytes was opened")
	}
}

func drawJob(t *rapid.T) workload.Job {
	small := rapid.Int32()
	return workload.Job{
		Number: small.Draw(t, "number"), Submit: rapid.Int64Range(-1, workload.MaxTime).Draw(t, "submit"),
		Wait: small.Draw(t, "wait"), Run: small.Draw(t, "run"), Procs: small.Draw(t, "procs"),
		CPU: rapid.Float64().Draw(t, "cpu"), Memory: rapid.Int64Range(-1, 1e17).Draw(t, "memory"),
		RequestedProcs: small.Draw(t, "rprocs"), RequestedTime: small.Draw(t, "rtime"),
		RequestedMem: rapid.Int64Range(-1, 1e17).Draw(t, "rmem"), User: small.Draw(t, "user"),
		Group: small.Draw(t, "group"), Executable: small.Draw(t, "exe"), Queue: small.Draw(t, "queue"),
		Partition: small.Draw(t, "part"), Preceding: small.Draw(t, "prec"), Think: small.Draw(t, "think"),
		Status: workload.Status(rapid.Int8Range(-1, 5).Draw(t, "status")),
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &workload.Log{
			Comments: rapid.SliceOf(rapid.StringMatching(`( ?[a-zA-Z:;0-9]+)*`)).Draw(t, "comments"),
			Jobs:     rapid.SliceOf(rapid.Custom(drawJob)).Draw(t, "jobs"),
		}
		got := reread(t, want)
		if len(got.Comments)+len(want.Comments) > 0 && !cmp.Equal(got.Comments, want.Comments) ||
			len(got.Jobs)+len(want.Jobs) > 0 && !cmp.Equal(got.Jobs, want.Jobs) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

type fataler interface{ Fatal(...any) }

func reread(t fataler, l *workload.Log) *workload.Log {
	var b bytes.Buffer
	if err := workload.WriteSWF(&b, l); err != nil {
		t.Fatal(err)
	}
	got, err := workload.ReadSWF(&b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func FuzzReadSWF(f *testing.F) {
	f.Add("; MaxProcs: 12\n" + line + "\n")
	f.Add("1 0 -1 34616 472 -1 -1 156 -1 -1 0 16 -1 64 -1 1 -1 -1")
	f.Add(";\xc2\x85\n1 -1 -1 5 1 0.1e-5 -1 -1 -1 -1 2 -1 -1 -1 -1 -1 -1 -1\r\n1 -1 9 5 1 0 0 0 0 0 3 0 0 0 0 0 0 0")
	f.Add("; MaxRecords: 2\n; Note: a\n\nno log\n7 5 0 5 9 0 0 0 9 0 4 0 0 0 0 0 0 0\n7 5 0 5 9 0 0 0 9 0 1 0 0 0 0 0 0 0")
	f.Fuzz(func(t *testing.T, text string) {
		agree(t, text)
		log, err := workload.ReadSWF(strings.NewReader(text))
		if err != nil {
			return
		}
		if again := reread(t, log); !cmp.Equal(log, again) {
			t.Errorf("written and read back: %s", cmp.Diff(log, again))
		}
		for b := range log.Bursts() {
			if b.Cores <= 0 || b.Submit < 0 || b.Start < b.Submit || b.End <= b.Start || b.Requested <= 0 {
				t.Errorf("impossible burst %+v", b)
			}
		}
		checkSlices(t, log)
	})
}

// checkSlices cuts a log in two at the middle of its submit times.
func checkSlices(t *testing.T, log *workload.Log) {
	at, timed := int64(0), 0
	for _, j := range log.Jobs {
		at = max(at, j.Submit/2)
		if j.Submit >= 0 {
			timed++
		}
	}
	workload.Summarise(log)
	a, err1 := workload.Slice(log, workload.Cut{To: at + 1})
	b, err2 := workload.Slice(log, workload.Cut{From: at + 1, Rebase: true})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if len(log.Comments) < workload.MaxComments-9 {
		reread(t, a)
		reread(t, b)
	}
	if n := len(a.Jobs) + len(b.Jobs); n > len(log.Jobs) {
		t.Errorf("%d jobs in two slices of %d", n, len(log.Jobs))
	}
}

func TestWriteRefusesWhatCouldNotBeRead(t *testing.T) {
	for name, l := range map[string]*workload.Log{
		"a comment of two lines": {Comments: []string{"a\n1 2 3"}},
		"a comment too long":     {Comments: []string{strings.Repeat("x", workload.MaxLine-1)}},
		"comments too many":      {Comments: make([]string, workload.MaxComments+1)},
		"comments too large":     {Comments: slices.Repeat([]string{strings.Repeat("x", 1<<15)}, 33)},
	} {
		var b bytes.Buffer
		if err := workload.WriteSWF(&b, l); !errors.Is(err, workload.ErrFormat) || b.Len() > 0 {
			t.Errorf("%s: %v, %d bytes written", name, err, b.Len())
		}
	}
	longest := &workload.Log{Comments: []string{strings.Repeat("x", workload.MaxLine-2)}}
	if !cmp.Equal(longest, reread(t, longest)) {
		t.Error("the longest comment is not read back")
	}
}

func TestGzipIsReadBackAndTheSameEachTime(t *testing.T) {
	l := mustRead(t, "; MaxProcs: 12\n"+strings.Repeat(line+"\n", 500))
	var a, b bytes.Buffer
	if err := errors.Join(workload.WriteGzip(&a, l), workload.WriteGzip(&b, l)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || a.Len() > 2000 {
		t.Errorf("%d and %d bytes, want the same few", a.Len(), b.Len())
	}
	plain, err := workload.Plain(&a)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := workload.ReadSWF(plain); err != nil || !cmp.Equal(got, l) {
		t.Errorf("read back: %v", err)
	}
	if err := workload.WriteGzip(&a, &workload.Log{Comments: []string{"\n"}}); !errors.Is(err, workload.ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
}
