package ledgeretcd

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Naive moves money between balances in an etcd cluster with one transaction for
// each transfer, without a journal, a history or a group commit. Benchmarks compare a
// Store with it. Its methods may be called at the same time.
type Naive struct {
	cluster *cluster
	prefix  string
}

const (
	naiveWait  = time.Minute // for one call: a transfer that takes longer fails
	removeWait = time.Minute // for all keys of a bank
)

// NewNaive has its balances below the bank's keys (Remove), and as many connections
// as clients, 1 or more.
func NewNaive(cfg Config, clients int) (*Naive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Naive{newCluster(cfg.Endpoints, cfg.TLS, clients), PrefixOf(cfg.Bank) + "naive/"}, nil
}

// Transfer moves 1 from one balance, named by a number, to another one. If another client
// has changed one of them meanwhile it does nothing. Balances begin with zero.
func (n *Naive) Transfer(ctx context.Context, from, to int) (done bool, err error) {
	keys := []string{n.prefix + strconv.Itoa(from), n.prefix + strconv.Itoa(to)}
	read, err := n.cluster.do(ctx, naiveWait, transaction{Then: []request{getOf(keys[0]), getOf(keys[1])}})
	if err != nil {
		return false, err
	}
	var t transaction
	for i, key := range keys {
		balance, revision, err := balanceOf(read.Responses[i].Range.Rows)
		if err != nil {
			return false, fmt.Errorf("%s: %w", key, err)
		}
		t.If = append(t.If, condition{Key: []byte(key), Target: "MOD", Result: "EQUAL", Modified: &revision})
		t.Then = append(t.Then, request{Put: &putRow{Key: []byte(key), Value: []byte(strconv.Itoa(balance + 2*i - 1))}})
	}
	written, err := n.cluster.do(ctx, naiveWait, t)
	return written.Succeeded, err
}

// Close closes the connections.
func (n *Naive) Close() { n.cluster.close() }

func getOf(key string) request { return request{Get: &getRange{Key: []byte(key)}} }

// balanceOf reads a balance that may not exist yet.
func balanceOf(rows []pair) (balance int, revision int64, err error) {
	if len(rows) == 0 {
		return 0, 0, nil
	}
	balance, err = strconv.Atoi(string(rows[0].Value))
	return balance, rows[0].Modified, err
}

// Remove deletes all keys of a bank from a cluster, after a measurement. No agent may have
// its ledger open.
func Remove(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	c := newCluster(cfg.Endpoints, cfg.TLS, idleConns)
	defer c.close()
	prefix := PrefixOf(cfg.Bank)
	var err error
	for range len(c.members) { // after a failure the next member is asked
		if err = c.remove(ctx, removeWait, prefix, prefix[:len(prefix)-1]+"0"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("remove the keys below %s from etcd: %w", prefix, err)
}
