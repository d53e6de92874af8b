package recent_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/recent"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A statement names purchases. One that is over is read once; one that is not, at every call.
func TestContractsAreReadOnce(t *testing.T) {
	tab, x := &table{records: map[string]string{}}, &recent.Contracts{}
	put := func(id, state, contract string) {
		tab.records[id] = fmt.Sprintf(`{"purchase":{"id":%q,"created":%q,"state":%q,"contract":%q,"rfq":"name of %s"}}`, id, time.Now().Format(time.RFC3339), state, contract, id)
	}
	look := func(what, want string, reads int) {
		t.Helper()
		tab.reads = 0
		list := []control.BankStatement{{Statement: message.Statement{Lines: []message.StatementLine{{Contract: "c1"}, {Contract: "c2"}, {Contract: "other"}, {}}}}}
		if err := x.Name(tab, list); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range []protocol.ContractID{"c1", "c2", "other", ""} {
			got += list[0].Purchases[c] + "/" + list[0].Names[c] + " "
		}
		if got != want || tab.reads != reads {
			t.Errorf("%s: %q after %d reads, want %q after %d", what, got, tab.reads, want, reads)
		}
	}
	put("p0", "failed", "")
	put("p1", "settled", "c1")
	put("p2", "voting", "")
	look("first", "p1/name of p1 / / / ", 3)
	look("again", "p1/name of p1 / / / ", 1)
	put("p2", "settled", "c2")
	look("now signed", "p1/name of p1 p2/name of p2 / / ", 1)
	look("nothing new", "p1/name of p1 p2/name of p2 / / ", 0)
	delete(tab.records, "p1")
	look("one is gone", "/ p2/name of p2 / / ", 2)
}
