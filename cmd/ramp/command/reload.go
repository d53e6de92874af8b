package command

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// hangups are the SIGHUPs that a daemon gets. Many in a row count as one.
func hangups() (<-chan os.Signal, func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	return hup, func() { signal.Stop(hup) }
}

// reload reads again what may change while the agent runs: the trust anchors and
// the revocation list, then the configuration.
func (n *node) reload() error {
	return errors.Join(n.reloadTrust(), n.retune())
}

// reloadTrust reads the trust anchors and the revocation list again. What is promised
// stands; peers that do not count any more are cut off, and what they say is
// refused. If the files cannot be read, nothing changes.
func (n *node) reloadTrust() error {
	t, err := n.cfg.trust()
	if err != nil {
		return err
	}
	if _, err := t.Verify(n.cred.ChainDER(), time.Now()); err != nil {
		return fail(exitUsage, "others would refuse this agent; nothing was changed", "own certificate %s: %w", n.cfg.path(n.cfg.Certificate), err)
	}
	n.trust.Replace(t)
	if n.mesh != nil {
		n.mesh.Recheck()
	}
	n.log.Info("trust read again", "revoked", n.trust.Revoked())
	return nil
}

// reloading reloads at hangups until stop is called.
func (n *node) reloading(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); n.reloadOn(ctx, n.hup) }()
	return func() { cancel(); <-done }
}

// reloadOn reloads at every hangup until ctx is done.
func (n *node) reloadOn(ctx context.Context, hup <-chan os.Signal) {
	for {
		select {
		case <-hup:
			n.hungUp()
		case <-ctx.Done():
			return
		}
	}
}

// hungUp reloads and logs what cannot be read: nobody waits for an answer.
func (n *node) hungUp() {
	if err := n.reloadTrust(); err != nil {
		n.log.Error("trust cannot be read again; it stays as it was", "err", err)
	}
	if err := n.retune(); err != nil {
		n.log.Error("the configuration cannot be read again; nothing of it was changed", "err", err)
	}
}

// reloaded is the answer of the control call.
type reloaded struct {
	Revoked int `json:"revoked"` // certificates that the list names
}

func (n *node) reloadRoute(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/reload", handler(func(context.Context, struct{}) (reloaded, error) {
		err := n.reload()
		return reloaded{n.trust.Revoked()}, err
	}))
}
