package workload

import (
	"strconv"
	"strings"
)

// Headers are the header comments of SWF 2.2 with a meaning, and all others. A missing
// text is empty; a missing or non-positive number is 0.
type Headers struct {
	Version, Computer, Installation string
	Acknowledge, Information        string
	Conversion, Preemption          string
	AllowOveruse                    string
	TimeZoneString                  string
	StartTime, EndTime              string // as written, in local time
	UnixStartTime                   int64  // Unix time of the log's second 0
	MaxJobs, MaxRecords             int64
	MaxNodes, MaxProcs              int64
	MaxRuntime, MaxMemory           int64 // seconds; kilobytes
	MaxQueues, MaxPartitions        int64
	Queues, Partitions, Notes       []string
	Other                           []Header // unknown keys, in order
}

// Header is one header comment, "key: value".
type Header struct{ Key, Value string }

// headerOf reads a comment. A comment whose text before the first colon is not
// one word of letters is prose, or continues the header above.
func headerOf(comment string) (Header, bool) {
	k, v, ok := strings.Cut(comment, ":")
	k = strings.TrimSpace(k)
	if !ok || k == "" || strings.HasPrefix(v, "//") || strings.ContainsFunc(k, notLetter) {
		return Header{}, false
	}
	return Header{k, strings.TrimSpace(v)}, true
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

// Headers reads the comments. Keys are compared without regard to case. The first of
// several equal keys counts, except that lists grow.
func (l *Log) Headers() Headers {
	h := Headers{}
	for _, c := range l.Comments {
		f, ok := headerOf(c)
		if !ok {
			continue
		}
		switch text, number, list := h.place(f.Key); {
		case text != nil && *text == "":
			*text = f.Value
		case number != nil && *number == 0:
			*number, _ = positive(f.Value)
		case list != nil:
			*list = append(*list, f.Value)
		case text == nil && number == nil:
			h.Other = append(h.Other, f)
		}
	}
	return h
}

// place is the destination of a key's value; all nil for an unknown key.
func (h *Headers) place(key string) (text *string, number *int64, list *[]string) {
	switch key = strings.ToLower(key); key {
	case "queue":
		return nil, nil, &h.Queues
	case "partition":
		return nil, nil, &h.Partitions
	case "note":
		return nil, nil, &h.Notes
	}
	return h.text(key), h.number(key), nil
}

func (h *Headers) text(key string) *string {
	return map[string]*string{
		"version": &h.Version, "computer": &h.Computer, "installation": &h.Installation,
		"acknowledge": &h.Acknowledge, "information": &h.Information, "conversion": &h.Conversion,
		"preemption": &h.Preemption, "allowoveruse": &h.AllowOveruse,
		"timezonestring": &h.TimeZoneString, "starttime": &h.StartTime, "endtime": &h.EndTime,
	}[key]
}

func (h *Headers) number(key string) *int64 {
	return map[string]*int64{
		"unixstarttime": &h.UnixStartTime, "maxjobs": &h.MaxJobs, "maxrecords": &h.MaxRecords,
		"maxnodes": &h.MaxNodes, "maxprocs": &h.MaxProcs, "maxruntime": &h.MaxRuntime,
		"maxmemory": &h.MaxMemory, "maxqueues": &h.MaxQueues, "maxpartitions": &h.MaxPartitions,
	}[key]
}

// positive reads the positive integer at the begin of a value; real headers append
// remarks: "1024 (512 until May)".
func positive(value string) (int64, bool) {
	word, _, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n <= 0 {
		return 0, false
	}
	return n, true
}

// SetHeader changes the value of the first comment with the key, or adds the comment at
// the end. The value is one line.
func (l *Log) SetHeader(key, value string) {
	line := " " + key + ": " + value
	for i, c := range l.Comments {
		if f, ok := headerOf(c); ok && strings.EqualFold(f.Key, key) {
			l.Comments[i] = line
			return
		}
	}
	l.Comments = append(l.Comments, line)
}
