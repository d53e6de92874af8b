package web_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/web"
	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/rfql"
)

const self = protocol.AgentID("ann@abcdefghij")

// fake is an agent that answers every call of its kind with a value whose every text is the
// same.
type fake struct {
	text string
	head []byte

	mu    sync.Mutex
	calls map[string][]string // questions, by path
}

func newFake(t *testing.T, text string) *fake {
	t.Helper()
	ca, err := identity.NewCA("ca", time.Now(), time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	bank, err := ca.Credential("bank", time.Now(), time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("0", 64)
	head, err := contract.SignHead(bank, contract.Head{Version: contract.HeadVersion, Bank: bank.ID, Size: 7, Root: zeros, Time: time.Now().Truncate(time.Millisecond), Previous: zeros})
	if err != nil {
		t.Fatal(err)
	}
	return &fake{text: text, head: head, calls: map[string][]string{}}
}

// handler answers the calls of a kind.
func (f *fake) handler(kind control.Kind) http.Handler {
	mux := http.NewServeMux()
	for _, c := range control.Table() {
		if c.Kind&kind == 0 {
			continue
		}
		mux.HandleFunc("POST "+c.Path, func(w http.ResponseWriter, r *http.Request) {
			var q json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&q)
			f.mu.Lock()
			f.calls[c.Path] = append(f.calls[c.Path], string(q))
			f.mu.Unlock()
			a := reflect.New(c.Answer)
			f.fill(a.Elem(), 0)
			f.mend(a.Interface())
			_ = json.NewEncoder(w).Encode(a.Interface())
		})
	}
	return mux
}

// fill sets every text, and a few of every list.
func (f *fake) fill(v reflect.Value, depth int) {
	if _, ok := v.Interface().(time.Time); ok || depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			f.fill(v.Index(0), depth+1)
			f.fill(v.Index(1), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}

// mend gives the fields their form that no peer can choose.
func (f *fake) mend(a any) {
	switch v := a.(type) {
	case *control.ProofAnswer:
		v.Proof, _ = json.Marshal(audit.Document{Version: audit.DocumentVersion, Head: f.head}) // it has no floats or channels
	case *[]control.Traced:
		for i := range *v {
			(*v)[i].Message = acl.Message{Performative: protocol.Inform}
		}
	case *message.Purchase:
		v.Relaxations = append(v.Relaxations[:1:1], message.Relaxation{Price: 20 * protocol.Credit, Offers: 3, Change: f.text})
	case *message.Run:
		v.Federation = true // the walk has programs of purchases
	case *control.ProgressLine:
		v.Done, v.Error = true, ""
	case *control.LogLine:
		v.Data = []byte(f.text)
	case *control.FilePiece:
		v.Size, v.Data = int64(len(f.text)), []byte(f.text)
	case *control.Event:
		v.Data = json.RawMessage("{}")
	case *control.OrderView:
		if f.text == plainText {
			v.Document = documentOf(time.Now())
		}
	}
}

const plainText = "plain"

// documentOf is a request that can be bought.
func documentOf(now time.Time) string {
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{{TotalCores: 4, Wall: time.Hour, End: now.Add(12 * time.Hour).Truncate(time.Second), Price: 10 * protocol.Credit}}}, now)
	if err != nil {
		panic(err)
	}
	return string(doc.XML())
}

// asked is how often a call was made.
func (f *fake) asked(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls[path])
}

// site is a served set of pages, with a browser that is logged in.
type site struct {
	t      *testing.T
	agent  *fake
	pages  *web.Server
	server *httptest.Server
	client *http.Client
	cookie *http.Cookie
}

// serve serves the pages of a fake agent.
func serve(t *testing.T, kind control.Kind, text string, change ...func(*web.Config)) *site {
	t.Helper()
	s := &site{t: t, agent: newFake(t, text)}
	cfg := web.Config{Kind: kind, Agent: self, Client: control.Local(s.agent.handler(kind)), Command: "ramp user web --dir x"}
	for _, f := range change {
		f(&cfg)
	}
	s.pages = web.New(cfg)
	s.server = httptest.NewServer(s.pages)
	t.Cleanup(s.server.Close)
	s.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// tokenOf is the token of a new link.
func (s *site) token() string {
	_, token, _ := strings.Cut(s.pages.Link(s.server.URL), "#")
	return token
}

// login logs in.
func (s *site) login() *site {
	s.t.Helper()
	r := s.do(s.request("POST", "/login", url.Values{"token": {s.token()}}))
	if len(r.Cookies()) != 1 {
		s.t.Fatalf("login: %d without a cookie", r.StatusCode)
	}
	s.cookie = r.Cookies()[0]
	return s
}

// request makes a request as a browser on these pages does.
func (s *site) request(method, path string, form url.Values) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest(method, s.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", s.server.URL)
	}
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	return r
}

func (s *site) do(r *http.Request) *http.Response {
	s.t.Helper()
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}
