package federated_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/federated"
	"ramp/protocol/message"
)

type journal map[string][]byte

func (j journal) Get(_, key string) ([]byte, error) { return j[key], nil }

func (j journal) Keys(_ string, f func(string) error) error {
	for _, k := range slices.Sorted(maps.Keys(j)) {
		if err := f(k); err != nil {
			return err
		}
	}
	return nil
}

func TestJobsAreListedByTime(t *testing.T) {
	j := journal{}
	for i, id := range []string{"c", "a", "b"} {
		b, err := json.Marshal(message.JobRow{ID: id, Name: "job " + id, Level: "high", Created: time.Unix(int64(i), 0)})
		if err != nil {
			t.Fatal(err)
		}
		j[id] = b
	}
	mux := http.NewServeMux()
	federated.Users{Journal: j}.Routes(mux)
	var list []control.JobView
	err := control.Jobs.Ask(context.Background(), control.Local(mux), control.LastCall{Limit: 2}, &list)
	if err != nil || len(list) != 2 || list[0].Name != "job a" || list[1].ID != "b" || list[1].State != message.JobQueued || list[1].Created.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
}
