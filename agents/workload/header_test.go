package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/agents/workload"
)

func TestHeadersAreTyped(t *testing.T) {
	l := mustRead(t, `; Version: 2.2
;    --- converted by hand ---
; Computer: a cluster: two halves
; Information: http://one.example/
;              http://two.example/
; UnixStartTime: 1170175078
; version: 9
; maxprocs: 4008 (4096 until May)
; MaxProcs: 9
; MaxNodes: unknown
; MaxRuntime: -1
; Note: first
; Note: second
; Queue: 1 pbatch
; Partition: 1 a
; Colour: green
; MaxJobs: 12
`)
	want := workload.Headers{
		Version: "2.2", Computer: "a cluster: two halves", Information: "http://one.example/",
		UnixStartTime: 1170175078, MaxProcs: 4008, MaxJobs: 12,
		Notes: []string{"first", "second"}, Queues: []string{"1 pbatch"}, Partitions: []string{"1 a"},
		Other: []workload.Header{{Key: "Colour", Value: "green"}},
	}
	if diff := cmp.Diff(want, l.Headers()); diff != "" {
		t.Error(diff)
	}
	if n := len(reread(t, l).Comments); n != 17 {
		t.Errorf("%d comments after writing and reading, want all 17, unknown ones too", n)
	}
}

func TestSetHeader(t *testing.T) {
	l := mustRead(t, "; a remark\n;MaxProcs : 5\n; MaxProcs: 6\n")
	l.SetHeader("maxProcs", "7")
	l.SetHeader("Computer", "new")
	want := []string{" a remark", " maxProcs: 7", " MaxProcs: 6", " Computer: new"}
	if diff := cmp.Diff(want, l.Comments); diff != "" {
		t.Error(diff)
	}
}
