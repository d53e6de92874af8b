package ledgeretcd

import (
	"context"
	"sync/atomic"
	"time"
)

// lead is a won election: the leader's key, and the lease on it.
type lead struct {
	cluster *cluster
	lease   int64
	term    int64        // create revision of the key
	until   atomic.Int64 // nanoseconds since begin; the lease holds until then
	begin   time.Time
}

// win tries to win the election; nil without an error: another agent was faster.
func win(ctx context.Context, c *cluster, key, name string, lease time.Duration) (*lead, error) {
	l := &lead{cluster: c, begin: time.Now()}
	ask, cancel := context.WithTimeout(ctx, askMost)
	defer cancel()
	asked := time.Now()
	granted, err := c.grant(ask, lease)
	if err != nil {
		return nil, err
	}
	l.lease = granted.ID
	l.extend(asked, granted.TTL)
	answer, err := c.do(ask, askMost, transaction{
		If:   []condition{createdAt(key, 0)},
		Then: []request{{Put: &putRow{[]byte(key), []byte(name), l.lease}}},
	})
	if err != nil || !answer.Succeeded {
		l.resign(ctx) // also if the answer was lost: the key goes with the lease
		return nil, err
	}
	l.term = answer.Header.Revision
	return l, nil
}

func (l *lead) extend(asked time.Time, seconds int64) {
	l.until.Store(int64(asked.Sub(l.begin) + time.Duration(seconds)*time.Second))
}

// holds reports whether nobody else can lead yet.
func (l *lead) holds() bool { return int64(time.Since(l.begin)) < l.until.Load() }

// renew keeps the lease until ctx is done, and returns when it is over.
func (l *lead) renew(ctx context.Context) {
	t := time.NewTicker(renewEvery)
	defer t.Stop()
	for l.holds() {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		l.renewOnce(ctx)
	}
}

// renewOnce keeps the lease as it is if the member does not answer: the next call asks another one.
func (l *lead) renewOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askFirst)
	defer cancel()
	asked := time.Now()
	if answer, err := l.cluster.keep(ctx, l.lease); err == nil {
		l.extend(asked, answer.TTL)
	}
}

// resign lets others lead at once, if the cluster can be reached.
func (l *lead) resign(ctx context.Context) {
	l.until.Store(0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = l.cluster.revoke(ctx, l.lease) // otherwise it expires
}
