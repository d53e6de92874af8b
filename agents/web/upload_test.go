package web_test

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/web"
)

// withFile is a form that brings a file.
func (s *site) withFile(fields map[string]string, content string) *http.Request {
	s.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for _, name := range []string{"id", "document", "command"} {
		if err := m.WriteField(name, fields[name]); err != nil {
			s.t.Fatal(err)
		}
	}
	f, err := m.CreateFormFile("files", "data.txt")
	if err == nil {
		_, err = io.WriteString(f, content)
	}
	if err == nil {
		err = m.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	r := s.request("POST", "/buy", nil)
	r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
	r.Header.Set("Content-Type", m.FormDataContentType())
	return r
}

// Files are read for a request that is in order, of a session, and for no other.
func TestFilesComeWithAnOrder(t *testing.T) {
	good := map[string]string{"id": "p0123456789abcdef", "document": documentOf(time.Now()), "command": "sort data.txt"}
	with := func(name, value string) map[string]string {
		fields := map[string]string{name: value}
		for k, v := range good {
			if k != name {
				fields[k] = v
			}
		}
		return fields
	}
	for name, c := range map[string]struct {
		fields map[string]string
		change func(r *http.Request)
		want   int
	}{
		"no session":     {good, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusSeeOther},
		"another origin": {good, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		"another host":   {good, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"no program":     {with("command", " "), nil, http.StatusBadRequest},
		"no request":     {with("document", "<rfq"), nil, http.StatusBadRequest},
		"no ID":          {with("id", "../x"), nil, http.StatusBadRequest},
		"not whole":      {good, func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(r.Body, 300)) }, http.StatusBadRequest},
	} {
		s := serve(t, control.User, plainText).login()
		r := s.withFile(c.fields, "3\n1\n2\n")
		if c.change != nil {
			c.change(r)
		}
		w := httptest.NewRecorder()
		if s.pages.ServeHTTP(w, r); w.Code != c.want || s.agent.asked("/v1/run/upload")+s.agent.asked("/v1/buy") > 0 {
			t.Errorf("%s: %d, want %d; asked: %v", name, w.Code, c.want, s.agent.calls)
		}
	}
	s := serve(t, control.User, plainText).login()
	const pieces = 3
	r := s.do(s.withFile(good, strings.Repeat("x", (pieces-1)*512<<10+1)))
	if got := s.agent.asked("/v1/run/upload"); r.StatusCode != http.StatusSeeOther || got != pieces {
		t.Errorf("%d, in %d pieces", r.StatusCode, got)
	}
	if q := s.agent.calls["/v1/buy"]; len(q) != 1 || !strings.Contains(q[0], `"command":["sh","-c","sort data.txt"]`) || !strings.Contains(q[0], `"inputs":[{`) {
		t.Errorf("bought by %.500q", q)
	}
}

// What a program prints, and its files, are text or a download, whatever is in them.
func TestOutputsOfProgramsAreNoPages(t *testing.T) {
	const script = "<script>alert(1)</script>\n\u202e\x1b[31m"
	s := serve(t, control.User, script).login()
	get := func(path string, header ...string) (string, http.Header) {
		t.Helper()
		r := s.request("GET", path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		a := s.do(r)
		b, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v: %s", path, a.StatusCode, err, b)
		}
		return string(b), a.Header
	}
	body, _ := get("/run/p1/1/live")
	if strings.ContainsAny(body, "<\u202e\x1b") || !strings.Contains(body, "data: &lt;script&gt;") || !strings.HasSuffix(body, "event: end\ndata: 1\n\n") {
		t.Errorf("live: %q", body)
	}
	if body, _ = get("/run/p1/1/live", "Last-Event-ID", "9"); !strings.Contains(body, "data: lert(1)") && !strings.Contains(body, "data: alert(1)") {
		t.Errorf("live, from byte 9: %q", body)
	}
	for _, path := range []string{"/run/p1/1/file?path=x.html", "/run/p1/2/files.zip"} {
		body, h := get(path)
		if h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("X-Content-Type-Options") != "nosniff" || body == "" {
			t.Errorf("%s: %v, %d bytes", path, h, len(body))
		}
	}
}

// The same request again has the command and the limits, and asks for the files.
func TestTheSameRequestAgainAsksForItsFiles(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	b, err := io.ReadAll(s.do(s.request("GET", "/compose?from=p1", nil)).Body)
	for _, want := range []string{"choose them again: the earlier request had 2 files", `name="max-cost" value="0.000001"`, `name="rounds" value="1"`, `value="cost" selected`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("no %q, %v: %s", want, err, b)
		}
	}
}

// The fields of a form with files are bounded together, and never cut off.
func TestLongFieldsAreRefused(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	r := s.do(s.withFile(map[string]string{"id": "p0123456789abcdef", "document": documentOf(time.Now()), "command": "sort data.txt #" + strings.Repeat("x", 256<<10)}, "1\n"))
	if n := s.agent.asked("/v1/run/upload") + s.agent.asked("/v1/buy"); r.StatusCode != http.StatusBadRequest || n > 0 {
		t.Errorf("%d, and the agent was asked %d times", r.StatusCode, n)
	}
}

// A browser that comes again gets the rest of both streams, in whatever order they come now, and
// a character that two pieces share.
func TestLiveOutputContinues(t *testing.T) {
	lines := []control.LogLine{{Stream: "stdout", Data: []byte("one ")}, {Stream: "stderr", Data: []byte("bad ")}, {Stream: "stdout", Data: []byte("tw\xc3")}, {Stream: "stdout", Data: []byte("\xb6")}}
	mux := http.NewServeMux()
	control.RunLog.Stream(mux, func(_ context.Context, _ control.RunCall, send func(control.LogLine) error) error {
		for _, l := range lines {
			if err := send(l); err != nil {
				return err
			}
		}
		return nil
	})
	s := serve(t, control.User, plainText, func(c *web.Config) { c.Client = control.Local(mux) }).login()
	get := func(last string) string {
		r := s.request("GET", "/run/p1/1/live", nil)
		r.Header.Set("Last-Event-ID", last)
		b, err := io.ReadAll(s.do(r).Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(b), "event: end\ndata: 1\n\n")
	}
	if got, want := get(""), "id: 4-0\ndata: one \n\nid: 4-4\ndata: bad \n\nid: 6-4\ndata: tw\n\nid: 8-4\ndata: ö\n\n"; got != want {
		t.Errorf("first: %q, want %q", got, want)
	}
	lines = []control.LogLine{{Stream: "stdout", Data: []byte("one twö three")}, {Stream: "stderr", Data: []byte("bad ")}}
	if got, want := get("8-4"), "id: 14-4\ndata:  three\n\n"; got != want {
		t.Errorf("again: %q, want %q", got, want)
	}
}
