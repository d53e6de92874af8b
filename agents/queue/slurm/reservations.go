package slurm

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// maxReservations bounds the reservations of a cluster.
const maxReservations = 1 << 16

type reservation struct {
	name      string
	slot      protocol.Slot // Cores as granted, not as requested
	nodes     []string
	partition string
}

const stamp = "2006-01-02T15:04:05" // Slurm's, in the zone of the environment: UTC

// readReservations reads what "scontrol -o show reservation" prints. A list that is cut
// off is an error: it must not look like lost reservations.
func readReservations(b []byte) ([]reservation, error) {
	const program = "scontrol show reservation"
	switch {
	case len(bytes.TrimSpace(b)) == 0:
		return nil, fmt.Errorf("%s printed nothing", program)
	case b[len(b)-1] != '\n':
		return nil, fmt.Errorf("%s: its list is cut off after %d bytes", program, len(b))
	}
	var list []reservation
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || string(line) == "No reservations in the system" {
			continue
		}
		r, err := readReservation(string(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		if len(list) >= maxReservations {
			return nil, fmt.Errorf("%s: more than %d reservations", program, maxReservations)
		}
		list = append(list, r)
	}
	return list, nil
}

// readReservation reads one line. The name may hold spaces; all else may not.
func readReservation(line string) (reservation, error) {
	rest, ok := strings.CutPrefix(line, "ReservationName=")
	at := strings.LastIndex(rest, " StartTime=")
	if !ok || at < 0 {
		return reservation{}, fmt.Errorf("not a reservation: %q", queue.OneLine([]byte(line[:min(len(line), 80)])))
	}
	r := reservation{name: rest[:at]}
	f := fields(rest[at:])
	var err error
	if r.slot.Start, err = time.Parse(stamp, f["StartTime"]); err != nil {
		return r, fmt.Errorf("reservation %q: StartTime=%.40q is not a time", r.name, f["StartTime"])
	}
	if r.slot.End, err = time.Parse(stamp, f["EndTime"]); err != nil {
		return r, fmt.Errorf("reservation %q: EndTime=%.40q is not a time", r.name, f["EndTime"])
	}
	if r.slot.Cores, err = strconv.Atoi(f["CoreCnt"]); err != nil || r.slot.Cores < 0 || r.slot.Cores > protocol.MaxCores {
		return r, fmt.Errorf("reservation %q: CoreCnt=%.40q is not a number of cores", r.name, f["CoreCnt"])
	}
	if r.partition = f["PartitionName"]; r.partition == "(null)" {
		r.partition = ""
	}
	if n := f["Nodes"]; n != "" && n != "(null)" {
		r.nodes, err = hosts(n)
	}
	return r, err
}

// fields are the KEY=VALUE of a line; the first of a key counts.
func fields(line string) map[string]string {
	f := map[string]string{}
	for _, w := range strings.Fields(line) {
		k, v, ok := strings.Cut(w, "=")
		if _, had := f[k]; ok && !had {
			f[k] = v
		}
	}
	return f
}
