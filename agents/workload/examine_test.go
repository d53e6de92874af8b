package workload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/agents/workload"
)

// ok is a log of which nothing is odd; %s is a place for more lines.
const ok = "; MaxProcs: 64\n; UnixStartTime: 1170175078\n1 100 20 3600 16 -1 -1 16 7200 -1 1 3 4 5 6 8 -1 -1\n%s"

func job(number int, fields string) string {
	return fmt.Sprintf("%d %s -1 -1 -1 -1 -1 -1 -1\n", number, fields)
}

func TestExamineNotesWhatIsOdd(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []workload.Note
	}{
		"nothing":                        {fmt.Sprintf(ok, ""), nil},
		"no header":                      {"\n" + job(1, "5 0 5 2 -1 -1 2 9 -1 1") + job(2, "5 0 5 7 -1 -1 9 9 -1 1"), []workload.Note{{workload.NoMaxProcs, 1, 3}, {workload.NoUnixStart, 1, 0}}},
		"headers that are no numbers":    {"; MaxNodes: many\n; MaxMemory: -1\n" + fmt.Sprintf(ok, ""), []workload.Note{{workload.OddHeader, 1, 1}}},
		"too many processors":            {strings.Replace(fmt.Sprintf(ok, ""), "MaxProcs: 64", "MaxProcs: 1073741825", 1), []workload.Note{{workload.NoMaxProcs, 1, 3}, {workload.OddHeader, 1, 1}}},
		"a job with too many processors": {fmt.Sprintf(ok, job(2, "100 0 5 1073741825 -1 -1 -1 9 -1 1")), []workload.Note{{workload.NoProcs, 1, 4}}},
		"another number of jobs":         {"; MaxRecords: 2\n" + fmt.Sprintf(ok, ""), []workload.Note{{workload.OtherRecords, 1, 1}}},
		"the told number of jobs":        {"; MaxRecords: 1\n" + fmt.Sprintf(ok, ""), nil},
		"no submit time":                 {fmt.Sprintf(ok, job(2, "-1 0 5 2 -1 -1 2 9 -1 1")+job(3, "-1 0 5 2 -1 -1 2 9 -1 1")), []workload.Note{{workload.NoSubmit, 2, 4}}},
		"out of order":                   {fmt.Sprintf(ok, job(2, "99 0 5 2 -1 -1 2 9 -1 1")+job(3, "100 0 5 2 -1 -1 2 9 -1 1")), []workload.Note{{workload.OutOfOrder, 1, 4}}},
		"no run time":                    {fmt.Sprintf(ok, job(2, "100 0 -1 2 -1 -1 2 9 -1 1")+job(3, "100 0 0 2 -1 -1 2 9 -1 5")), []workload.Note{{workload.NoRun, 2, 4}}},
		"no processors":                  {fmt.Sprintf(ok, job(2, "100 0 5 -1 -1 -1 -1 9 -1 1")), []workload.Note{{workload.NoProcs, 1, 4}}},
		"no allocation":                  {fmt.Sprintf(ok, job(2, "100 0 5 -1 -1 -1 4 9 -1 1")), []workload.Note{{workload.NoAllocation, 1, 4}}},
		"no wait":                        {fmt.Sprintf(ok, job(2, "100 -1 5 4 -1 -1 4 9 -1 1")), []workload.Note{{workload.NoWait, 1, 4}}},
		"no requested time":              {fmt.Sprintf(ok, job(2, "100 0 5 4 -1 -1 4 -1 -1 1")), []workload.Note{{workload.NoRequestedTime, 1, 4}}},
		"an overrun":                     {fmt.Sprintf(ok, job(2, "100 0 10 4 -1 -1 4 9 -1 1")+job(3, "100 0 9 4 -1 -1 4 9 -1 1")), []workload.Note{{workload.Overrun, 1, 4}}},
		"more than the machine":          {fmt.Sprintf(ok, job(2, "100 0 5 65 -1 -1 4 9 -1 1")), []workload.Note{{workload.Oversize, 1, 4}}},
		"a number twice":                 {fmt.Sprintf(ok, job(1, "100 0 5 4 -1 -1 4 9 -1 1")), []workload.Note{{workload.RepeatedNumber, 1, 4}}},
		"bursts without a summary":       {fmt.Sprintf(ok, job(2, "100 0 5 4 -1 -1 4 9 -1 2")+job(2, "-1 3 5 4 -1 -1 4 9 -1 3")), []workload.Note{{workload.BurstLine, 2, 4}}},
		"bursts with a summary":          {fmt.Sprintf(ok, job(1, "100 0 5 4 -1 -1 4 9 -1 2")+job(1, "-1 3 5 4 -1 -1 4 9 -1 4")), []workload.Note{{workload.BurstLeftOut, 2, 4}}},
		"of what is left out one reason": {fmt.Sprintf(ok, job(2, "-1 -1 -1 -1 -1 -1 -1 -1 -1 1")), []workload.Note{{workload.NoSubmit, 1, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := workload.Examine(strings.NewReader(c.text))
			if !r.Usable() {
				t.Fatal(r.Faults)
			}
			if diff := cmp.Diff(c.want, r.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryKindOfNoteHasWords(t *testing.T) {
	for _, k := range workload.Kinds() {
		for _, n := range []workload.Note{{k, 1, 0}, {k, 1, 7}, {k, 3, 7}} {
			if s := n.String(); strings.HasSuffix(s, ": ") || s == "" || strings.HasPrefix(s, "line 7") != (n.Line > 0) {
				t.Errorf("%s: %q", k, s)
			}
		}
	}
	if got, want := (workload.Note{workload.NoSubmit, 3, 7}).String(), "line 7 and 2 more: no submit time: the job is left out"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExamineGoesOnBehindAFault(t *testing.T) {
	l, r := workload.Examine(strings.NewReader("; MaxProcs: 64\nno log\n" + line + "\n\n" + line + " 9\n" + line))
	want := []workload.Fault{
		{Line: 2, What: `field 1 (job number) is "no": want a whole number of at most 2147483647, or -1: not a workload log`},
		{Line: 5, What: "more than 18 fields: not a workload log"},
	}
	if diff := cmp.Diff(want, r.Faults); diff != "" {
		t.Error(diff)
	}
	if len(l.Jobs) != 2 || r.Jobs != 2 || r.Ran != 2 || r.Lines != 6 || r.Usable() {
		t.Errorf("%d jobs, report %+v", len(l.Jobs), r)
	}
}

func TestExamineNamesWhatIsNotUsableAsAWhole(t *testing.T) {
	cut := packed(t, strings.Repeat(line+"\n", 1000))
	for name, c := range map[string]struct {
		text io.Reader
		line int
		want string
	}{
		"an empty text":           {strings.NewReader(""), 0, "no job ran"},
		"nothing but headers":     {strings.NewReader("; MaxProcs: 5\n"), 0, "no job ran"},
		"a gzip file cut short":   {bytes.NewReader(cut[:len(cut)-9]), 1001, "cut short"},
		"bytes behind gzip data":  {io.MultiReader(bytes.NewReader(cut), strings.NewReader("garbage that is longer than a header")), 1001, "or other bytes follow it"},
		"a gzip file cut shorter": {bytes.NewReader(cut[:5]), 1, "not a whole gzip file"},
		"a line without an end":   {strings.NewReader(line + "\n" + strings.Repeat("1 ", workload.MaxLine)), 2, "longer than 65536 bytes"},
		"a disk that fails":       {io.MultiReader(strings.NewReader(line+"\n"), broken{}), 2, "the disk is gone"},
		"comments without an end": {strings.NewReader(strings.Repeat(";\n", 2*workload.MaxComments)), workload.MaxComments + 1, "more than 4096 comment lines"},
		"comments beyond all measure": {
			strings.NewReader(strings.Repeat("; "+strings.Repeat("x", 1<<15)+"\n", 32)), 32, "more than 1048576 bytes of comments",
		},
		"lines without an end": {io.MultiReader(strings.NewReader(line+"\n"), &endless{workload.MaxLines + 5}), workload.MaxLines + 1, "more than 8388608 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := workload.Examine(c.text)
			if len(r.Faults) != 1 || r.Faults[0].Line != c.line || !strings.Contains(r.Faults[0].What, c.want) {
				t.Errorf("got %+v, want line %d: %s", r.Faults, c.line, c.want)
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// endless is so many empty lines.
type endless struct{ left int }

func (e *endless) Read(b []byte) (int, error) {
	n := min(len(b), e.left)
	for i := range b[:n] {
		b[i] = '\n'
	}
	if e.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestFaultsAreBounded(t *testing.T) {
	_, r := workload.Examine(strings.NewReader(strings.Repeat("x\n", workload.MaxFaults+7)))
	if len(r.Faults) != workload.MaxFaults || r.More != 7 {
		t.Errorf("%d faults and %d more, want %d and 7", len(r.Faults), r.More, workload.MaxFaults)
	}
}

// What Examine calls usable is what ReadSWF reads, and of which something ran.
func TestExamineAgreesWithReadSWF(t *testing.T) {
	pieces := []string{line + "\n", "; MaxProcs: 9\n", "\n", "bad\n", line + " 1\n", "2 -1 0 5 1 0 0 1 9 0 1 0 0 0 0 0 0 0\n", line[:9]}
	rapid.Check(t, func(t *rapid.T) {
		agree(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "lines"), ""))
	})
}

func agree(t interface{ Fatalf(string, ...any) }, text string) {
	if strings.HasPrefix(text, "\x1f\x8b") {
		return // that is a gzip file, which ReadSWF does not unpack
	}
	l, r := workload.Examine(strings.NewReader(text))
	strict, err := workload.ReadSWF(strings.NewReader(text))
	switch {
	case err != nil && (r.Usable() || !strings.HasSuffix(err.Error(), r.Faults[0].What)):
		t.Fatalf("ReadSWF says %v, Examine %+v", err, r.Faults)
	case err == nil && !cmp.Equal(l, strict):
		t.Fatalf("the logs differ: %s", cmp.Diff(l, strict))
	case err == nil && r.Usable() != (r.Ran > 0):
		t.Fatalf("usable %v, but %d ran: %+v", r.Usable(), r.Ran, r.Faults)
	}
	if r.Lines != len(strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")) && text != "" {
		t.Fatalf("%d lines in %q", r.Lines, text)
	}
}
