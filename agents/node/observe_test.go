package node

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ramp/agents/config"
	"ramp/agents/web"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A log of decisions has each once, however often it is asked for.
func TestADecisionIsLoggedWhenItIsMade(t *testing.T) {
	settled := message.Decision{Outcome: protocol.OutcomeSettled}
	for name, c := range map[string]struct {
		in    bool
		m     protocol.Message
		level slog.Level
	}{
		"a bank answers who brought the last copy": {false, protocol.Message{Performative: protocol.Agree, InReplyTo: "copy", Body: settled}, slog.LevelInfo},
		"a bank tells the others":                  {false, protocol.Message{Performative: protocol.Inform, Body: settled}, slog.LevelInfo},
		"a bank is asked once more":                {false, protocol.Message{Performative: protocol.Inform, InReplyTo: "ended", Body: settled}, slog.LevelDebug},
		"a user asks how a unit has ended":         {true, protocol.Message{Performative: protocol.Inform, InReplyTo: "ended", Body: settled}, slog.LevelDebug},
		"a seller in doubt hears it":               {true, protocol.Message{Performative: protocol.Inform, InReplyTo: "doubt", Body: settled}, slog.LevelInfo},
	} {
		if level, what := decisionOf(c.in, c.m); level != c.level || what != "settled" {
			t.Errorf("%s: %s at %s, want settled at %s", name, what, level, c.level)
		}
	}
}

// A reservation that the batch system has lost leaves a line when it is asked for again.
func TestAReservationThatIsMadeAgainIsLogged(t *testing.T) {
	for _, again := range []bool{true, false} {
		m := protocol.Message{Performative: protocol.Request, Body: message.Reserve{ID: "r-1", Again: again}}
		level, what := decisionOf(false, m)
		if told := what != ""; told != again || again && level != slog.LevelWarn {
			t.Errorf("again %t: logged %q at %s", again, what, level)
		}
	}
}

// A job that did not run leaves one line at its site, with the reason.
func TestAJobThatDidNotRunIsLogged(t *testing.T) {
	lost := protocol.JobStatus{State: protocol.JobLost, Note: "node failed"}
	for _, c := range []struct {
		m     message.LaunchStatus
		what  string
		level slog.Level
	}{
		{message.LaunchStatus{Stage: message.StageFailed, Why: "no"}, "a job did not begin", slog.LevelInfo}, // its buyer may have killed it
		{message.LaunchStatus{Stage: message.StageCollecting, Job: lost}, "", 0},
		{message.LaunchStatus{Stage: message.StageDone, Job: lost}, "a job was lost", slog.LevelWarn},
		{message.LaunchStatus{Stage: message.StageDone, Job: protocol.JobStatus{State: protocol.JobExited}}, "", 0},
	} {
		if level, what := decisionOf(false, protocol.Message{Performative: protocol.Inform, Body: c.m}); what != c.what || what != "" && level != c.level {
			t.Errorf("%+v: logged %q at %s, want %q", c.m, what, level, c.what)
		}
		if _, what := decisionOf(false, protocol.Message{Performative: protocol.Inform, InReplyTo: "again", Body: c.m}); what != "" {
			t.Errorf("%+v: an answer to a repeated question is logged", c.m)
		}
	}
}

// A buyer that names its purchase like a quote leaves the same trace at a seller as others.
func TestTheNameOfAQuoteHidesNothing(t *testing.T) {
	seller := &Node{Cfg: &config.Config{Resource: &config.Resource{}}}
	user := &Node{Cfg: &config.Config{User: &config.User{}}}
	for _, c := range []struct {
		n        *Node
		id, of   string
		recorded bool
	}{
		{seller, "quote-1", protocol.ProtocolCommit, true},
		{seller, "quote-1", protocol.ProtocolRequest, true},
		{seller, "c1", protocol.ProtocolAuction, false},
		{user, "quote-1", protocol.ProtocolAuction, false},
		{user, "c1", protocol.ProtocolAuction, true},
	} {
		m := protocol.Message{Conversation: c.id, Protocol: c.of, Sender: "a@b", Receivers: []protocol.AgentID{"c@d"}}
		if got := c.n.traces(m); got != c.recorded {
			t.Errorf("%s of %s: traced %t, want %t", c.of, c.id, got, c.recorded)
		}
	}
}

// A page whose name resolves to this machine gets no answer from the monitor.
func TestTheMonitorAnswersOnlyForItsOwnHost(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for host, want := range map[string]int{
		"127.0.0.1:9301": http.StatusOK, "127.8.0.1": http.StatusOK, "[::1]:9301": http.StatusOK, "localhost:9301": http.StatusOK, "LOCALHOST.": http.StatusOK,
		"attacker.example:9301": http.StatusMisdirectedRequest, "127.0.0.1.attacker.example": http.StatusMisdirectedRequest,
		"192.0.2.1:9301": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest,
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		if web.OnlyLoopback(ok).ServeHTTP(w, r); w.Code != want || want != http.StatusOK && !strings.Contains(w.Body.String(), "localhost") {
			t.Errorf("host %q: %d %s, want %d", host, w.Code, w.Body, want)
		}
	}
}
