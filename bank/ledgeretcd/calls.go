package ledgeretcd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// The few calls of etcd's interface that a ledger needs, in their JSON form: octets in
// base64, 64-bit numbers as strings.

type pair struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Modified int64  `json:"mod_revision,string"`
}

type putRow struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
	Lease int64  `json:"lease,string"`
}

type getRange struct {
	Key   []byte `json:"key"`
	End   []byte `json:"range_end,omitempty"` // empty: only the key
	Limit int64  `json:"limit,string,omitempty"`
}

type request struct {
	Put    *putRow   `json:"request_put,omitempty"`
	Get    *getRange `json:"request_range,omitempty"`
	Delete *getRange `json:"request_delete_range,omitempty"`
}

// condition: that revision made the key, which still exists, or changed it last; zero:
// the key does not exist. One of the two is set.
type condition struct {
	Key      []byte `json:"key"`
	Target   string `json:"target"`
	Result   string `json:"result"`
	Created  *int64 `json:"create_revision,string,omitempty"`
	Modified *int64 `json:"mod_revision,string,omitempty"`
}

func createdAt(key string, revision int64) condition {
	return condition{Key: []byte(key), Target: "CREATE", Result: "EQUAL", Created: &revision}
}

func exists(key string) condition {
	return condition{Key: []byte(key), Target: "CREATE", Result: "GREATER", Created: new(int64)}
}

type transaction struct {
	If   []condition `json:"compare,omitempty"`
	Then []request   `json:"success,omitempty"`
	Else []request   `json:"failure,omitempty"`
}

type outcome struct {
	Header struct {
		Revision int64 `json:"revision,string"`
	} `json:"header"`
	Succeeded bool `json:"succeeded"`
	Responses []struct {
		Range struct {
			Rows []pair `json:"kvs"`
		} `json:"response_range"`
	} `json:"responses"`
}

func (c *cluster) do(ctx context.Context, wait time.Duration, t transaction) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = c.call(ctx, "/v3/kv/txn", t, &o)
	asked := len(t.Then)
	if !o.Succeeded {
		asked = len(t.Else)
	}
	if err == nil && len(o.Responses) != asked {
		err = fmt.Errorf("etcd answers %d requests with %d", asked, len(o.Responses))
	}
	return o, err
}

func (c *cluster) get(ctx context.Context, key string) ([]pair, error) {
	o, err := c.do(ctx, askMost, transaction{Then: []request{{Get: &getRange{Key: []byte(key)}}}})
	if err != nil {
		return nil, err
	}
	return o.Responses[0].Range.Rows, nil
}

func (c *cluster) remove(ctx context.Context, wait time.Duration, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return c.call(ctx, "/v3/kv/deleterange", getRange{Key: []byte(from), End: []byte(to)}, new(json.RawMessage))
}

type lease struct {
	ID  int64 `json:"ID,string"`
	TTL int64 `json:"TTL,string,omitempty"` // seconds
}

func (c *cluster) grant(ctx context.Context, d time.Duration) (l lease, err error) {
	err = c.call(ctx, "/v3/lease/grant", lease{TTL: int64(d / time.Second)}, &l)
	return l, err
}

// keep renews a lease; its time to live is zero if it has ended.
func (c *cluster) keep(ctx context.Context, id int64) (lease, error) {
	var answer struct {
		Result lease `json:"result"`
	}
	err := c.call(ctx, "/v3/lease/keepalive", lease{ID: id}, &answer)
	return answer.Result, err
}

func (c *cluster) revoke(ctx context.Context, id int64) error {
	return c.call(ctx, "/v3/lease/revoke", lease{ID: id}, new(json.RawMessage))
}
