package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/protocol"
	"ramp/rfql"
)

// An application and its parameters are ordered as the form names them, and fill in the form of
// the same request again.
func TestAnApplicationIsAProgramToo(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	b, _ := io.ReadAll(s.do(s.request("GET", "/compose?from=p1", nil)).Body)
	for _, want := range []string{`name="app" value="` + plainText + `"`, plainText + "=" + plainText + "</textarea>", "ran several programs"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the same request again has no %s", want)
		}
	}
	form := func(change url.Values) url.Values {
		f := url.Values{"id": {"p0123"}, "cores": {"4"}, "wall": {"1h"}, "within": {"12h"}, "max-price": {"10"}}
		for k, v := range change {
			f[k] = v
		}
		return f
	}
	r := s.do(s.request("POST", "/buy", form(url.Values{"app": {"blast"}, "params": {"db=nt\r\n\r\nquery=a b=c\r\n"}})))
	q := s.agent.calls["/v1/buy"]
	if r.StatusCode != http.StatusSeeOther || len(q) != 1 || !strings.Contains(q[0], `"app":"blast","params":[{"name":"db","value":"nt"},{"name":"query","value":"a b=c"}]`) || strings.Contains(q[0], `"command"`) {
		t.Errorf("%d, bought by %q", r.StatusCode, q)
	}
	draft, _, err := rfql.Read([]byte(documentOf(time.Now())))
	if err != nil {
		t.Fatal(err)
	}
	draft.Objective = protocol.ObjectiveTime
	doc, err := rfql.Check(draft, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.do(s.request("POST", "/buy", url.Values{"id": {"p0124"}, "document": {string(doc.XML())}, "optimize": {"cost-time"}}))
	if q := s.agent.calls["/v1/buy"]; len(q) != 2 || !strings.Contains(q[1], fmt.Sprintf(`"objective":%d`, protocol.ObjectiveTime)) {
		t.Errorf("bought by %q", q)
	}
	for name, change := range map[string]url.Values{
		"both":                    {"app": {"blast"}, "command": {"true"}},
		"parameters of nothing":   {"params": {"a=b"}},
		"parameters of a program": {"params": {"a=b"}, "command": {"true"}},
		"no value":                {"app": {"blast"}, "params": {"a"}},
		"no name":                 {"app": {"blast"}, "params": {"=a"}},
	} {
		if r := s.do(s.request("POST", "/buy", form(change))); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
	if n := s.agent.asked("/v1/buy"); n != 2 {
		t.Errorf("%d orders", n)
	}
}
