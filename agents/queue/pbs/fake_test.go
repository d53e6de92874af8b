package pbs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// The stand-ins for PBS's commands are this test binary under other names. They
// print what OpenPBS's manual and sources say, keep their reservations in a file,
// and confirm one if the cores are free.
func TestMain(m *testing.M) {
	if name := os.Getenv("RAMP_STANDS_FOR"); name != "" {
		os.Exit(standIn(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

const nodes, nodeCores = 2, 8

// standIns makes the commands in a directory of their own, with their state in dir.
func standIns(tb testing.TB, dir string) string {
	tb.Helper()
	bin := tb.TempDir()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range []string{"pbsnodes", "qstat", "pbs_rstat", "pbs_rsub", "pbs_rdel", "qsub", "qdel", "qsig"} {
		script(tb, bin, name, fmt.Sprintf("GORACE='%s' RAMP_STANDS_FOR=%s RAMP_STATE='%s' exec '%s' \"$@\"", os.Getenv("GORACE"), name, dir, self))
	}
	return bin
}

func script(tb testing.TB, dir, program, line string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		tb.Fatal(err)
	}
}

type fakeReservation struct {
	Number int
	Name   string
	Slot   protocol.Slot
}

func standIn(name string, args []string) int {
	path := filepath.Join(os.Getenv("RAMP_STATE"), "fake.json")
	var list []fakeReservation
	if b, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(b, &list); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 9
		}
	}
	switch name {
	case "pbsnodes":
		fmt.Print(nodesForm)
		return 0
	case "qstat":
		return fakeJobs()
	case "qsub":
		return fakeStart(list, args)
	case "qdel":
		return fakeKill(args[0])
	case "qsig":
		fmt.Fprintln(os.Stderr, "qsig: Unauthorized Request "+args[2])
		return 159
	case "pbs_rstat":
		for _, r := range list {
			fmt.Printf(reservationForm, r.Number, r.Name, r.Slot.Start.UTC().Format(fakeStamp), r.Slot.End.UTC().Format(fakeStamp),
				int(r.Slot.Wall().Seconds()), r.Number, r.Slot.Cores, r.Slot.Cores)
		}
		return 0
	case "pbs_rdel":
		return fakeDelete(path, list, args[0])
	}
	return fakeSubmit(path, list, args)
}

const fakeStamp = "Mon Jan 02 15:04:05 2006"

func fakeDelete(path string, list []fakeReservation, id string) int {
	for i, r := range list {
		if id == fmt.Sprintf("R%d.south", r.Number) {
			return fakeWrite(path, append(list[:i:i], list[i+1:]...))
		}
	}
	fmt.Fprintf(os.Stderr, "pbs_rdel: Unknown Reservation Id %s\n", id)
	return 236
}

func fakeSubmit(path string, list []fakeReservation, args []string) int {
	r := fakeReservation{Number: 1}
	for _, x := range list {
		r.Number = max(r.Number, x.Number+1)
	}
	for i := 0; i+1 < len(args); i += 2 {
		var err error
		switch v := args[i+1]; args[i] {
		case "-N":
			r.Name = v
		case "-R":
			r.Slot.Start, err = time.Parse("200601021504.05", v)
		case "-E":
			r.Slot.End, err = time.Parse("200601021504.05", v)
		case "-l":
			r.Slot.Cores, err = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(v, "select="), ":ncpus=1"))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "pbs_rsub: illegal %s value\n", args[i])
			return 2
		}
	}
	var uses []protocol.Slot
	for _, x := range list {
		uses = append(uses, x.Slot)
	}
	if queue.Taken(uses, r.Slot)+r.Slot.Cores > nodes*nodeCores {
		fmt.Printf("R%d.south DENIED\n", r.Number)
		return 0
	}
	fmt.Printf("R%d.south CONFIRMED\n", r.Number)
	return fakeWrite(path, append(list, r))
}

func fakeWrite(path string, list []fakeReservation) int {
	b, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	return 0
}

// The forms are those that the sources print and the manual shows.
const nodesForm = `{
    "timestamp":1600079400,
    "pbs_version":"20.0.1",
    "pbs_server":"south",
    "nodes":{
        "vn1":{"Mom":"vn1","state":"free","pcpus":8,"resources_available":{"arch":"linux","host":"vn1","mem":"16gb","ncpus":8,"vnode":"vn1"},"resources_assigned":{}},
        "vn2":{"Mom":"vn2","state":"job-busy","pcpus":8,"resources_available":{"arch":"linux","host":"vn2","mem":"16gb","ncpus":"8","vnode":"vn2"},"resources_assigned":{}},
        "vn3":{"Mom":"vn3","state":"down,offline","resources_available":{"ncpus":8}}
    }
}
`

const reservationForm = `Resv ID: R%d.south
Reserve_Name = %s
Reserve_Owner = agent@south
reserve_state = RESV_CONFIRMED
reserve_start = %s
reserve_end = %s
reserve_duration = %d
queue = R%d
Resource_List.ncpus = %d
Resource_List.nodect = %d
Resource_List.place = free
resv_nodes = (vn1:ncpus=1)
Authorized_Users = agent@south
server = south
ctime = Mon Sep 14 10:00:00 2020
Variable_List = PBS_O_LOGNAME=agent,PBS_O_HOST=south

`
