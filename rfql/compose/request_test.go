package compose_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ramp/rfql/compose"
)

// said reads words with spaces between; "|" begins another unit of a file.
func said(line, where string) (list []compose.Said) {
	for _, w := range strings.Fields(line) {
		word, value, _ := strings.Cut(w, "=")
		list = append(list, compose.Said{Word: compose.Word(word), Value: value, Where: where + word})
	}
	return list
}

func TestAFileAndFlagsAreOneRequest(t *testing.T) {
	for _, c := range []struct{ name, job, units, flags, want string }{
		{"flags alone", "", "", "cores=1 wall=1m within=1h max-price=2 and cores=2", "1x1m0s@2 2x1m0s@2"},
		{"a file alone", "cores=1 wall=1m within=1h max-price=2", "", "", "1x1m0s@2"},
		{"a flag wins", "cores=1 wall=1m within=1h max-price=2", "", "cores=3", "3x1m0s@2"},
		{"a flag changes every unit", "wall=1m within=1h max-price=2", "cores=1|cores=2", "wall=5m", "1x5m0s@2 2x5m0s@2"},
		{"what a unit changes stays in it", "cores=1 wall=1m within=1h max-price=2", "wall=2m max-price=9|cores=4", "", "1x2m0s@9 4x1m0s@2"},
		{"units in both", "wall=1m", "cores=1|cores=2", "and", "--and: describe all units in the file, or all of them in flags"},
		{"a fault of the file", "cores=x", "", "wall=1m", `job.yaml:1: cores "x": want a whole number, 1 to`},
		{"faults of the file", "cores=x wall=y", "", "", "\njob.yaml:1: wall"},
		{"a fault of a flag", "cores=1", "", "wall=x", `--wall "x": want a time`},
		{"two flags of one kind", "", "", "cores=4 nodes=2x2", "--cores and --nodes: give one of them"},
		{"two ends of the second unit", "", "", "within=1h and by=23:00 within=3h", "--by and --within: give one of them"},
		{"two disks beside a file", "cores=1", "", "disk=5G node-disk=6G", "--disk and --node-disk: give one of them"},
		{"another kind in the next unit", "", "", "cores=1 wall=1m within=1h max-price=2 and nodes=2x3", "1x1m0s@2 6x1m0s@2"},
		{"another kind than in a file", "cores=1 wall=1m within=1h max-price=2", "", "nodes=2x3", "6x1m0s@2"},
		{"a disk that is dropped for another", "cores=1 wall=1m within=1h max-price=2", "", "disk=any node-disk=6G", "1x1m0s@2"},
		{"nothing before and", "", "", "and", "--and comes between two units"},
		{"something missing", "cores=1", "", "within=1h", "cannot make the request: missing --wall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var units [][]compose.Said
			for u := range strings.SplitSeq(c.units, "|") {
				if c.units != "" {
					units = append(units, said(u, "job.yaml:2: "))
				}
			}
			r := compose.Request{File: compose.FileWords(said(c.job, "job.yaml:1: "), units), Flags: said(c.flags, "--")}
			doc, err := r.Document(now, now, 0)
			var got []string
			for i := range doc.Len() {
				q := doc.Request(i)
				got = append(got, fmt.Sprintf("%dx%s@%s", q.Cores, q.Wall, q.Price))
			}
			if err != nil {
				got = []string{err.Error()}
			}
			if !strings.Contains(strings.Join(got, " "), c.want) {
				t.Errorf("got %q, want %s", got, c.want)
			}
		})
	}
}

// The slots of an array last as long as the indexes that each of them takes.
func TestTheSlotsOfAnArray(t *testing.T) {
	r := compose.Request{Flags: said("cores=2 wall=90s max-price=1", "--"), Begin: time.Hour, Slots: 6, Turns: 5}
	if wall, err := r.Wall(now); wall != 2*time.Minute || err != nil || r.Cores(now) != 2 {
		t.Fatalf("an index takes %s of %d cores, %v", wall, r.Cores(now), err)
	}
	doc, err := r.Document(now, now, 0)
	if err != nil || doc.Len() != 6 {
		t.Fatalf("%d units, %v", doc.Len(), err)
	}
	for i := range doc.Len() {
		if q := doc.Request(i); q.Wall != 10*time.Minute || q.Cores != 2 || !q.End.Equal(now.Truncate(time.Second).Add(70*time.Minute)) {
			t.Errorf("slot %d: %+v", i, q)
		}
	}
	for line, want := range map[string]string{
		"cores=1 wall=1m max-price=1 and cores=2": "an array has one unit for each index",
		"cores=1 max-price=1":                     "an array needs --wall",
		"cores=1 wall=3000d max-price=1":          "exceed the longest slot",
	} {
		r := compose.Request{Flags: said(line, "--"), Begin: time.Hour, Slots: 2, Turns: 5}
		if _, err := r.Document(now, now, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
