package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ramp/bank/ledgeretcd/etcdtest"
)

// The figures of a cluster stand beside those of a file, and nothing of the bank that
// was measured is left in the cluster.
func TestBenchBankMeasuresAClusterAndLeavesNothingInIt(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	c := etcdtest.Start(t)
	hosts := strings.Join(c.Endpoints, ",")
	out := p.good("bench bank --json --clients 1,4 --accounts 70 --entries 0 --time 100ms --dir . --store etcd:" + hosts)
	var rows []map[string]float64
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if len(rows) != 2 || rows[0]["clients"] != 1 || rows[1]["clients"] != 4 {
		t.Fatalf("rows %v, want of 1 and of 4 clients", rows)
	}
	for _, name := range []string{
		"per_second", "bbolt_batch_per_second", "signed_per_second", "signed_25_units_per_second", "signature_only_per_second", "fsync_median_ms", "etcd_per_second", "etcd_naive_per_second",
	} {
		if rows[0][name] <= 0 || rows[1][name] <= 0 {
			t.Errorf("%s is missing: %v", name, rows)
		}
	}
	if n := keysIn(t, c.Endpoints[0]); n != "0" {
		t.Errorf("%s keys are left in the cluster", n)
	}
}

// keysIn counts all keys of a cluster.
func keysIn(t *testing.T, endpoint string) string {
	t.Helper()
	const all = `{"key":"AA==","range_end":"AA==","count_only":true}` // from the zero octet on
	resp, err := http.Post("http://"+endpoint+"/v3/kv/range", "application/json", strings.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := struct {
		Header map[string]string `json:"header"`
		Count  string            `json:"count"`
	}{Count: "0"} // it is not there when it is zero
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Header["revision"] == "" {
		t.Fatal(err, answer)
	}
	return answer.Count
}

func TestBenchBankRefusesWhatIsNoCluster(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	many := "etcd:" + strings.Repeat("h,", 16) + "h"
	for _, store := range []string{"etcd", "etcd:", "etcd:a,,b", "bbolt:x", "postgres:a", "/tmp/x", many} {
		p.refused("bench bank --store "+store, 2, fmt.Sprintf("--store %q: want etcd:HOST,HOST, 1..16 members", store), "")
	}
	p.refused("bench bank --dir . --store etcd:127.0.0.1:1 --accounts 2 --entries 0", 1, "no answer from the etcd cluster at 127.0.0.1:1 within 10s", "etcdctl")
	for _, accounts := range []string{"1", "-1", "99999999999"} {
		p.refused("bench bank --accounts "+accounts, 2, "--accounts "+accounts+": want 2..", "")
	}
	p.refused("bench bank --dir DIR/none", 2, "--dir:", "")
}
