package node

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol/identity"
)

// hangups receives the SIGHUPs of a daemon. Several in a row count as one. When ctx ends,
// systemd learns that the daemon is stopping.
func hangups(ctx context.Context) (<-chan os.Signal, func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	running := context.AfterFunc(ctx, func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }) // systemd sees the end anyway
	return hup, func() { running(); signal.Stop(hup) }
}

// settings are what an agent reads from files and may read again while it runs: trust
// anchors, the revocation list and its configuration.
type settings struct {
	file    string // the configuration
	cfg     *config.Config
	cred    *identity.Credential
	trust   *identity.Trust
	recheck func()                         // checks all peers again; nil: without the network
	adopt   func(cfg *config.Config) error // gives the role its new limits; nil: it has none
	hup     <-chan os.Signal               // of a daemon
	log     *slog.Logger
}

// readSettings reads an agent's configuration, credential and trust anchors.
func readSettings(file string, log *slog.Logger) (s settings, err error) {
	s = settings{file: file, log: log}
	if s.cfg, err = config.Read(file); err != nil {
		return s, err
	}
	if err := s.cfg.Check(); err != nil {
		return s, err
	}
	if s.cred, err = s.cfg.Credential(); err != nil {
		return s, err
	}
	if s.trust, err = s.cfg.TrustAnchors(); err != nil {
		return s, err
	}
	if _, err := s.trust.Verify(s.cred.ChainDER(), time.Now()); err != nil {
		return s, config.CertificateFault(s.cfg.Path(s.cfg.Certificate), err)
	}
	return s, nil
}

// reloadTrust reads the trust anchors and the revocation list again, and cuts off peers that they
// no longer accept. Promises to them remain. If a file cannot be read, nothing changes.
func (s *settings) reloadTrust() error {
	t, err := s.cfg.TrustAnchors()
	if err != nil {
		return err
	}
	if _, err := t.Verify(s.cred.ChainDER(), time.Now()); err != nil {
		return exit.Fail(exit.Usage, "others would refuse this agent; nothing was changed", "own certificate %s: %w", s.cfg.Path(s.cfg.Certificate), err)
	}
	s.trust.Replace(t)
	if s.recheck != nil {
		s.recheck()
	}
	s.log.Info("trust anchors reloaded", "revoked", s.trust.Revoked())
	return nil
}

// watch reloads at every hangup until stop is called.
func (s *settings) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); s.reloadOn(ctx, s.hup) }()
	return func() { cancel(); <-done }
}

// reloadOn reloads at every hangup until ctx is done.
func (s *settings) reloadOn(ctx context.Context, hup <-chan os.Signal) {
	for {
		select {
		case <-hup:
			s.hungUp()
		case <-ctx.Done():
			return
		}
	}
}

// hungUp reloads and logs errors, since nobody waits for an answer.
func (s *settings) hungUp() {
	if err := s.reloadTrust(); err != nil {
		s.log.Error("cannot reload the trust anchors; the old ones stay", "err", err)
	}
	if _, err := s.reloadConfig(); err != nil {
		s.log.Error("cannot reload the configuration; the old one stays", "err", err)
	}
}

func (s *settings) routes(mux *http.ServeMux) {
	control.Reload.Answer(mux, func(context.Context, struct{}) (control.Reloaded, error) {
		trust := s.reloadTrust()
		restart, err := s.reloadConfig()
		return control.Reloaded{Revoked: s.trust.Revoked(), Restart: restart}, errors.Join(trust, err)
	})
}

// adoptTime is how long the role may take to adopt a configuration.
const adoptTime = 10 * time.Second

// reloadConfig reads the configuration again and adopts what may change while the agent runs: the
// level of the log, and the prices and limits of its role. A faulty configuration, which the next
// start would refuse, changes nothing. It returns the changed keys that need a restart.
func (s *settings) reloadConfig() (restart []string, err error) {
	cfg, err := config.Reread(s.cfg.Kind(), s.file, s.trust)
	if err != nil {
		return nil, err
	}
	if s.adopt != nil {
		if err := s.adopt(cfg); err != nil {
			return nil, err
		}
	}
	if h, ok := s.log.Handler().(levelled); ok {
		h.level.Set(cfg.Log.SlogLevel())
	}
	s.log.Info("configuration reloaded", "file", s.file)
	if restart = s.cfg.NeedsRestart(cfg); len(restart) > 0 {
		s.log.Warn("these keys have changed and need a restart", "keys", strings.Join(restart, ", "))
	}
	return restart, nil
}

// inRole calls f in the goroutine that owns the role.
func (n *Node) inRole(f func(r agents.Role) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), adoptTime)
	defer cancel()
	failed, err := agents.Read(ctx, n.Runner, func(_ time.Time, r agents.Role) error { return f(r) })
	if err != nil {
		return err
	}
	return failed
}
