package pbs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

const (
	stamp           = "Mon Jan _2 15:04:05 2006" // in the zone of the environment: UTC
	maxReservations = 1 << 16
	maxQueued       = 4096 // waiting jobs in a state
)

// reservation is an entry of pbs_rstat.
type reservation struct {
	id    string
	name  string
	state string
	queue string // of its jobs
	slot  protocol.Slot
}

// confirmed reports whether the server holds the cores. A degraded reservation has lost
// nodes, and the server searches for others: a second one would take them away.
func (r reservation) confirmed() bool {
	return slices.Contains([]string{"RESV_CONFIRMED", "RESV_TIME_TO_RUN", "RESV_RUNNING", "RESV_BEING_ALTERED", "RESV_DEGRADED"}, r.state)
}

// readReservations reads the output of "pbs_rstat -F": blocks of lines, each followed
// by an empty line. Without reservations there is no output.
func readReservations(out []byte) ([]reservation, error) {
	const program = "pbs_rstat"
	text := string(out)
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if !strings.HasSuffix(text, "\n\n") {
		return nil, fmt.Errorf("%s: its list is cut off after %d bytes", program, len(out))
	}
	var list []reservation
	for _, block := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		r, err := readReservation(block)
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

func readReservation(block string) (reservation, error) {
	first, rest, _ := strings.Cut(block, "\n")
	id, ok := strings.CutPrefix(first, "Resv ID: ")
	if !ok || id == "" || id[0] == '-' || strings.ContainsAny(id, " \t") {
		return reservation{}, fmt.Errorf("not a reservation: %q", queue.OneLine([]byte(first[:min(len(first), 80)])))
	}
	f := map[string]string{}
	for line := range strings.Lines(rest) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " = "); ok {
			f[k] = v
		}
	}
	r := reservation{id: id, name: f["Reserve_Name"], state: f["reserve_state"], queue: f["queue"]}
	var err1, err2, err3 error
	r.slot.Start, err1 = time.Parse(stamp, f["reserve_start"])
	r.slot.End, err2 = time.Parse(stamp, f["reserve_end"])
	r.slot.Cores, err3 = strconv.Atoi(f["Resource_List.ncpus"])
	if err := errors.Join(err1, err2, err3); err != nil || r.slot.Cores < 0 || r.slot.Cores > protocol.MaxCores {
		return r, fmt.Errorf("reservation %s: invalid times %q to %q or cores %q", id, f["reserve_start"], f["reserve_end"], f["Resource_List.ncpus"])
	}
	return r, nil
}

func decode(program string, b []byte, v any) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return fmt.Errorf("%s printed nothing", program)
	case b[0] != '{':
		return fmt.Errorf("%s printed %q instead of JSON", program, queue.OneLine(b[:min(len(b), 80)]))
	}
	if err := json.Unmarshal(b, v); err != nil && json.Unmarshal(repaired(b), v) != nil {
		return fmt.Errorf("%s printed invalid JSON: %w", program, err)
	}
	return nil
}

// repaired empties the variables of jobs, and values that are not JSON: PBS writes words such
// as 005 without quotes, and the functions of a shell with wrong escapes, so that one job of a
// stranger would hide all others.
func repaired(b []byte) []byte {
	var kept []byte
	end := "" // the line that ends the variables of a job
	for line := range strings.Lines(string(b)) {
		bare := strings.TrimRight(line, ", \t\r\n")
		key, value, ok := strings.Cut(bare, ":")
		value = strings.TrimSpace(value)
		switch {
		case end != "" && bare != end:
			continue
		case strings.TrimSpace(key) == `"Variable_List"` && value == "{":
			end = key[:strings.IndexByte(key, '"')] + "}"
		case ok && !strings.HasPrefix(value, "{") && !json.Valid([]byte(value)):
			line = key + `:""` + line[len(bare):]
		case bare == end:
			end = ""
		}
		kept = append(kept, line...)
	}
	return kept
}

// figure is a number, which PBS sometimes writes in quotes.
type figure int64

func (f *figure) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil || n < 0 || n > protocol.MaxCores {
		return fmt.Errorf("%.40s: want a whole number of 0..%d", b, protocol.MaxCores)
	}
	*f = figure(n)
	return nil
}

// text is a word. PBS writes it without quotes if it is valid JSON by itself: a job may
// be called 7, true or null.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		*t = text(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// readCores adds up the cores of usable nodes.
func readCores(b []byte) (int, error) {
	var doc struct {
		Server string `json:"pbs_server"`
		Nodes  map[string]struct {
			State     text `json:"state"`
			Resources struct {
				Cores figure `json:"ncpus"`
			} `json:"resources_available"`
		} `json:"nodes"`
	}
	if err := decode("pbsnodes", b, &doc); err != nil {
		return 0, err
	}
	if len(doc.Nodes) == 0 {
		return 0, errors.New("pbsnodes lists no nodes")
	}
	sum := 0
	for _, n := range doc.Nodes {
		if usable(string(n.State)) {
			sum += int(n.Resources.Cores)
		}
	}
	if sum > protocol.MaxCores {
		return 0, fmt.Errorf("pbsnodes lists %d cores, at most %d", sum, protocol.MaxCores)
	}
	return sum, nil
}

func usable(state string) bool {
	lost := []string{"down", "offline", "offline_by_mom", "stale", "state-unknown", "unresolvable", "maintenance", "sleep", "provisioning", "wait-provisioning"}
	return !slices.ContainsFunc(strings.Split(strings.ToLower(state), ","), func(s string) bool { // PBS capitalizes only Stale
		return slices.Contains(lost, strings.TrimSpace(s))
	})
}

// job is an entry of qstat.
type job struct {
	id     string
	number int
	Name   text `json:"Job_Name"`
	State  text `json:"job_state"`
	Queue  text `json:"queue"`
	Start  text `json:"stime"`
	Queued text `json:"qtime"`
	Needs  struct {
		Cores figure `json:"ncpus"`
		Wall  text   `json:"walltime"`
	} `json:"Resource_List"`
	Used struct {
		CPU  text `json:"cput"`
		Wall text `json:"walltime"` // without suspended time
	} `json:"resources_used"`
}

// readJobs reads all jobs, sorted by number.
func readJobs(b []byte) ([]job, error) {
	var doc struct {
		Server *string        `json:"pbs_server"`
		Jobs   map[string]job `json:"Jobs"`
	}
	if err := decode("qstat", b, &doc); err != nil {
		return nil, err
	}
	if doc.Server == nil {
		return nil, errors.New("qstat printed JSON that is not from PBS")
	}
	list := make([]job, 0, len(doc.Jobs))
	for id, j := range doc.Jobs {
		j.id = id
		digits := strings.TrimRight(id[:len(id)-len(strings.TrimLeft(id, "0123456789"))], " ")
		j.number, _ = strconv.Atoi(digits) // 0 without a number
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.Start, b.Start), cmp.Compare(a.id, b.id))
	})
	return list, nil
}

// endless is the assumed length of a job without a wall time.
const endless = 365 * 24 * time.Hour

func (j job) wall() time.Duration {
	d, ok := clock(j.Needs.Wall)
	if !ok {
		return endless
	}
	return max(d, time.Second)
}

// clock reads hours:minutes:seconds, at most endless.
func clock(t text) (time.Duration, bool) {
	sum := time.Duration(0)
	parts := strings.Split(string(t), ":")
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > int(endless/time.Second) || len(parts) > 3 {
			return 0, false
		}
		sum = sum*60 + time.Duration(n)*time.Second
	}
	return min(sum, endless), true
}

// take adds the jobs that run, or wait outside reservations. The tasks of an array
// count, but not the array itself.
func take(q *message.QueueChanged, jobs []job, list []reservation) {
	for _, j := range jobs {
		if j.Needs.Cores == 0 || strings.Contains(j.id, "[]") || slices.ContainsFunc(list, func(r reservation) bool { return r.confirmed() && r.queue == string(j.Queue) }) {
			continue
		}
		switch j.State {
		case "R", "E", "S":
			q.Running = append(q.Running, message.RunningJob{
				Cores: int(j.Needs.Cores), End: j.end(q.At), ID: j.id, Submitted: instant(j.Queued), Started: instant(j.Start), Wall: j.wall(),
			})
		case "Q":
			if len(q.Queued) < maxQueued {
				q.Queued = append(q.Queued, message.QueuedJob{Cores: int(j.Needs.Cores), Wall: j.wall(), ID: j.id, Submitted: instant(j.Queued)})
			}
		}
	}
}

// instant reads Unix seconds; 0 gives the zero time.
func instant(s text) time.Time {
	t, err := time.Parse(stamp, string(s))
	if err != nil {
		return time.Time{}
	}
	return t
}

func (j job) end(now time.Time) time.Time {
	start := instant(j.Start)
	if start.IsZero() {
		start = now
	}
	return protocol.Later(start.Add(j.wall()), now).Add(Late)
}
