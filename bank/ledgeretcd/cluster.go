package ledgeretcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// cluster speaks to the members through the JSON form of etcd's interface (its gateway, on the same
// port). etcd's own Go client cannot be in one program with libp2p's gossip: both register a file
// rpc.proto with protobuf, which panics. So the choice of a member is made here: the last one that
// answered, and the next after a failure.
type cluster struct {
	members []string // base URLs
	http    *http.Client
	turn    atomic.Uint32 // index of the member to ask, modulo their number
}

const (
	maxAnswer = 64 << 20 // octets of an answer
	idleConns = 4        // kept for each member
)

// refusal is a member's answer to a failed request.
type refusal struct {
	Code    int    `json:"code"` // of gRPC
	Message string `json:"error"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Message, r.Code) }

// Codes of gRPC after which nothing has changed.
const (
	invalidArgument   = 3
	permissionDenied  = 7
	resourceExhausted = 8
	unauthenticated   = 16
)

// refused reports whether a request changed nothing in the cluster.
func refused(err error) bool {
	var r *refusal
	return errors.As(err, &r) && slices.Contains([]int{invalidArgument, permissionDenied, resourceExhausted, unauthenticated}, r.Code)
}

// newCluster keeps up to idle connections to each member.
func newCluster(endpoints []string, secure *tls.Config, idle int) *cluster {
	c := &cluster{http: &http.Client{Transport: &http.Transport{TLSClientConfig: secure, MaxIdleConnsPerHost: idle}}}
	scheme := "http://"
	if secure != nil {
		scheme = "https://"
	}
	for _, e := range endpoints {
		if !strings.Contains(e, "://") {
			e = scheme + e
		}
		c.members = append(c.members, strings.TrimSuffix(e, "/"))
	}
	return c
}

func (c *cluster) close() { c.http.CloseIdleConnections() }

// call asks one member. If it fails, the next call goes to the next one.
func (c *cluster) call(ctx context.Context, path string, question, answer any) error {
	b, err := json.Marshal(question)
	if err != nil {
		return err
	}
	turn := c.turn.Load()
	member := c.members[int(turn)%len(c.members)]
	if err := c.post(ctx, member+path, b, answer); err != nil {
		c.turn.CompareAndSwap(turn, turn+1)
		return err
	}
	return nil
}

func (c *cluster) post(ctx context.Context, url string, body []byte, answer any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode == http.StatusOK {
		return d.Decode(answer)
	}
	var r refusal
	if err := d.Decode(&r); err != nil {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return &r
}
