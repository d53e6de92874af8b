package rfql

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"time"
)

// XML writes d in its canonical form: equal documents give equal bytes, and Parse of the
// bytes gives d again, at any time and place before its end. Instants are in UTC, with Z;
// WallTime is written only if it is shorter than the window.
func (d Document) XML() []byte {
	w := writer{}
	w.WriteString(xml.Header)
	w.WriteString(`<RequestForQuotation xmlns="` + Namespace + `"`)
	if d.extended() {
		w.WriteString(` xmlns:r="` + ExtensionNamespace + `"`)
	}
	if d.objective != 0 {
		w.attribute(Optimize, d.objective.String())
	}
	if d.together {
		w.attribute(SameStart, "true")
	}
	w.WriteString(">\n")
	for _, r := range d.requests {
		w.request(r)
	}
	w.WriteString("</RequestForQuotation>\n")
	return w.Bytes()
}

// extended reports whether d uses our own namespace.
func (d Document) extended() bool {
	for _, r := range d.requests {
		if r.Name != "" || r.Application != "" || r.Metered() {
			return true
		}
	}
	return d.objective != 0 || d.together
}

type writer struct{ bytes.Buffer }

func (w *writer) request(r Request) {
	w.WriteString("  <Request")
	w.attribute(Name, r.Name)
	w.attribute(Application, r.Application)
	w.WriteString(">\n")
	if r.Price > 0 {
		w.term(CPUHourCost, r.Price.String())
	}
	w.instant(EndDate, EndTime, r.End)
	if !r.NotBefore.IsZero() {
		w.instant(StartDate, StartTime, r.NotBefore)
	}
	w.term(OperatingSystem, r.OS)
	w.term(OSVersion, r.OSVersion)
	w.term(Architecture, r.Arch)
	w.number(CPUSpeed, r.CPUSpeed)
	if !r.fills() {
		w.number(WallTime, int(r.Wall/time.Minute))
	}
	w.number(InterNodeBandwidth, r.Bandwidth)
	w.number(RAMPerCore, r.RAMPerCore)
	w.disk(r)
	w.cores(r)
	w.contract(r.Contract)
	w.WriteString("  </Request>\n")
}

func (w *writer) disk(r Request) {
	if r.TotalDisk == 0 && r.NodeDisk == 0 {
		return
	}
	w.WriteString("    <Disk>\n")
	w.WriteString("  ")
	w.number(TotalDiskSpace, r.TotalDisk)
	w.number(NodeDiskSpace, r.NodeDisk)
	w.WriteString("    </Disk>\n")
}

func (w *writer) cores(r Request) {
	w.WriteString("    <Cores>\n")
	if r.Nodes == 0 {
		w.WriteString("  ")
		w.number(TotalCores, r.Cores)
	} else {
		w.WriteString("      <Nodes>\n    ")
		w.number(NodeCount, r.Nodes)
		w.WriteString("    ")
		w.number(NodeCores, r.NodeCores)
		w.WriteString("      </Nodes>\n")
	}
	w.WriteString("    </Cores>\n")
}

// attribute writes one of our attributes unless it is empty.
func (w *writer) attribute(t Term, value string) {
	if value == "" {
		return
	}
	w.WriteString(" r:" + string(t) + `="`)
	w.escape(value)
	w.WriteByte('"')
}

// term writes an element unless it is empty.
func (w *writer) term(t Term, value string) {
	if value == "" {
		return
	}
	w.WriteString("    <" + string(t) + ">")
	w.escape(value)
	w.WriteString("</" + string(t) + ">\n")
}

func (w *writer) number(t Term, n int) {
	if n != 0 {
		w.term(t, strconv.Itoa(n))
	}
}

func (w *writer) instant(date, clock Term, t time.Time) {
	w.term(date, t.Format(time.DateOnly))
	w.term(clock, t.Format("15:04:05.999999999Z"))
}

// escape writes text. Writing to a buffer cannot fail.
func (w *writer) escape(s string) { _ = xml.EscapeText(&w.Buffer, []byte(s)) }
