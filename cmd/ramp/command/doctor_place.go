package command

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ramp/agents/journal"
	"ramp/agents/mesh"
	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
)

// What the doctor thinks of.
const (
	doctorBundles = 16      // verified bundles that it remembers: nobody sends it any
	diskLow       = 1 << 30 // bytes free, below which it warns
	dialTime      = 3 * time.Second
	clocksTime    = 10 * time.Second // for other agents to tell theirs
)

// checkDirectory looks at the directory and the key in it.
func (p *patient) checkDirectory() {
	switch err := p.tryWriting(); {
	case errors.Is(err, syscall.ENOSPC):
		return // the disk is told of
	case err != nil:
		p.bad("directory", "an agent must be able to write there: mount it writable, or give it to this user", "%s", err)
		return
	}
	key, err := os.Stat(filepath.Join(p.dir, agentKey))
	if err == nil && key.Mode().Perm()&0o077 != 0 {
		p.warn("directory", "chmod 600 "+filepath.Join(p.dir, agentKey), "others can read the private key (%s)", key.Mode().Perm())
		return
	}
	p.good("directory", "it can be written")
}

// tryWriting writes a page, and takes it away again.
func (p *patient) tryWriting() error {
	f, err := os.CreateTemp(p.dir, ".doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, os.Getpagesize()))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// checkDisk looks how much room there is, and of a site also where its jobs are.
func (p *patient) checkDisk() {
	dirs := []string{p.dir}
	if cfg, err := readConfig(filepath.Join(p.dir, configName)); err == nil { // what is wrong with it is told later
		dirs = cfg.places()
	}
	free := int64(math.MaxInt64)
	for _, dir := range dirs {
		r, err := roomAt(dir)
		if err != nil {
			p.warn("disk", "", "how much is free cannot be told: %s", err)
			return
		}
		if why := r.lacks(); why != "" {
			p.bad("disk", roomHelp, "%s", why)
			return
		}
		free = min(free, r.free)
	}
	if free < diskLow {
		p.warn("disk", roomHelp, "%d MB free", free>>20)
		return
	}
	p.good("disk", "%d GB free", free>>30)
}

// checkDaemon looks whether the daemon answers, and if none runs, at what it left.
func (p *patient) checkDaemon() {
	d, ok := meetDaemon(p.dir)
	if ok && p.follows(d) {
		return
	}
	if ok {
		p.daemon = d
		p.good("daemon", "it answers on %s", socketPath(p.dir))
		return
	}
	file := p.cfg.dataFile()
	who, err := boltfile.Holder(file)
	switch {
	case err != nil:
		p.bad("daemon", "", "%s", err)
		return
	case who != nil:
		p.bad("daemon", "wait until it is done, or end it: a daemon that hangs is ended with kill -9, and nothing is lost", "%s, and does not answer", who)
		return
	case isThere(socketPath(p.dir)):
		p.warn("daemon", "the next 'ramp "+p.cfg.kind()+" serve' takes its place", "it does not run; one that died has left its socket")
	default:
		p.good("daemon", "it does not run")
	}
	p.checkJournal(file)
}

// follows reports whether a bank's daemon does not lead: then it is asked no further.
func (p *patient) follows(d *caller) bool {
	var s liveStatus
	ctx, cancel := context.WithTimeout(context.Background(), statusCallTime)
	defer cancel()
	if p.cfg.Bank == nil || d.call(ctx, "POST", "/v1/agent", nil, &s) != nil {
		return false
	}
	switch {
	case s.Waits != "":
		p.bad("daemon", "look at the etcd cluster: 'etcdctl endpoint status --cluster'", "%s", s.Waits)
	case s.Follows != "":
		p.good("daemon", "it follows; %s leads", s.Follows)
	}
	return s.stands()
}

// dataFile is the journal or ledger of an agent on this machine.
func (c *config) dataFile() string {
	if c.Bank != nil {
		return c.bankFile()
	}
	return filepath.Join(c.dir, journalName)
}

// bankFile is the file in which a bank's ledger is on this machine: of one in a cluster
// the mirror.
func (c *config) bankFile() string {
	if file, err := c.ledgerFile(); err == nil {
		return file
	}
	return filepath.Join(c.dir, mirrorName)
}

// checkJournal opens the journal or ledger, if there is one, and closes it.
func (p *patient) checkJournal(file string) {
	if !isThere(file) {
		p.good("journal", "there is none yet")
		return
	}
	var err error
	if p.cfg.Bank != nil {
		var db *ledgerdb.DB
		if db, err = ledgerdb.Open(file); err == nil {
			err = db.Close()
		}
	} else {
		var j *journal.Journal
		if j, err = journal.Open(file, traceBytes); err == nil {
			err = j.Close()
		}
	}
	if err != nil {
		p.bad("journal", journalHelp(err), "%s", err)
		return
	}
	p.good("journal", "%s can be read", file)
}

// journalHelp is what helps when a journal cannot be opened.
func journalHelp(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "an agent must be able to write its files: mount them writable, or give them to this user"
	case errors.Is(err, boltfile.ErrNewer):
		return "use the version of the program that wrote it, or restore a backup from before"
	}
	return "restore it from a backup"
}

// checkListen looks whether the addresses can be had, unless the daemon has them.
func (p *patient) checkListen() {
	if p.daemon != nil {
		return
	}
	for _, a := range p.cfg.Listen {
		host, ok := dialAddress(a)
		if !ok {
			p.warn("listen", "want one such as /ip4/0.0.0.0/tcp/4101", "%s is not understood", a)
			continue
		}
		l, err := net.Listen("tcp", host)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			p.bad("listen", "choose another port under 'listen', or stop the process that has it", "%s: another process listens there", a)
		case err != nil:
			p.bad("listen", "choose an address of this machine under 'listen'", "%s: %s", a, err)
		default:
			_ = l.Close()
			p.good("listen", "%s is free", a)
		}
	}
}

// dialAddress is HOST:PORT of a multiaddress of TCP.
func dialAddress(a string) (string, bool) {
	parts := strings.Split(a, "/")
	if len(parts) < 5 || parts[3] != "tcp" {
		return "", false
	}
	return net.JoinHostPort(parts[2], parts[4]), true
}

// checkBootstrap looks whether somebody answers at the addresses to join by, and
// reports whether the market may be reached.
func (p *patient) checkBootstrap(ctx context.Context) bool {
	p.checkMDNS()
	if len(p.cfg.Bootstrap) == 0 {
		if p.cfg.MDNS {
			return true
		}
		if p.cfg.Bank == nil {
			p.warn("bootstrap", "'ramp user init --join INVITATION' writes some; 'mdns: true' finds agents of this network", "there are no addresses to join by")
		}
		return p.daemon != nil
	}
	answered := 0
	var silent []string
	for _, a := range p.cfg.Bootstrap {
		host, ok := dialAddress(a)
		d := net.Dialer{Timeout: dialTime}
		conn, err := d.DialContext(ctx, "tcp", host)
		if !ok || err != nil {
			silent = append(silent, a)
			continue
		}
		_ = conn.Close()
		answered++
	}
	switch {
	case answered == 0:
		p.bad("bootstrap", "are the bank and the sites running, and can this machine reach them? A new invitation has new addresses", "nobody answers at %s", strings.Join(silent, ", "))
	case len(silent) > 0:
		p.warn("bootstrap", "take it out of 'bootstrap' if it is gone for good", "nobody answers at %s; %d others do", strings.Join(silent, ", "), answered)
	case answered == 1:
		p.good("bootstrap", "it answers")
	default:
		p.good("bootstrap", "all %d answer", answered)
	}
	return answered > 0
}

// checkMDNS looks whether others of this network can find this agent.
func (p *patient) checkMDNS() {
	switch {
	case !p.cfg.MDNS:
	case onlyLocal(p.cfg.Listen):
		p.warn("mdns", "listen on /ip4/0.0.0.0/tcp/PORT", "who is found cannot be reached from this network: %s", strings.Join(p.cfg.Listen, ", "))
	case !hasMulticast():
		p.warn("mdns", "give addresses under 'bootstrap'", "no network of this machine carries multicast")
	default:
		p.good("mdns", "agents of this network find another")
	}
}

// hasMulticast reports whether a network of this machine carries multicast.
func hasMulticast() bool {
	all, err := net.Interfaces()
	const both = net.FlagUp | net.FlagMulticast
	return err == nil && slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&both == both })
}

// checkClock compares the clock with those of the agents that can be reached.
func (p *patient) checkClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clocksTime)
	defer cancel()
	list, err := p.askClocks(ctx)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if ctx.Err() != nil && p.daemon != nil {
			first = "its daemon heard nobody within " + clocksTime.String()
		}
		if errors.Is(err, mesh.ErrCutOff) {
			p.bad("market", cutOffHint, "%s", first)
			return
		}
		p.warn("clock", "", "no other agent tells the time: %s", first)
		return
	}
	if len(list) == 0 {
		p.warn("clock", "", "no other agent is there to compare it with")
		return
	}
	switch said := judgeClocks(list); {
	case said.off == 0:
		p.good("clock", "within %s of %s", time.Duration(max(abs(said.worst.AheadMS), said.worst.WithinMS)+1)*time.Millisecond, plural(len(list), "other agent"))
	case said.wrongHere():
		p.bad("clock", clockHelp+protocol.ClockSkew.String(), "%s", said.words())
	default:
		p.warn("clock", "tell its owner", "that of %s is %s this one; the others agree with this one", said.worst.Agent.Name(), aheadWords(said.worst.AheadMS))
	}
}

// askClocks asks through the daemon, or joins the market for a moment.
func (p *patient) askClocks(ctx context.Context) ([]clockView, error) {
	if p.daemon != nil {
		var list []clockView
		err := p.daemon.call(ctx, "POST", "/v1/clocks", nil, &list)
		return list, err
	}
	if len(p.cfg.Bootstrap) == 0 && !p.cfg.MDNS {
		return nil, nil
	}
	trust, err := p.cfg.trust()
	if err != nil {
		return nil, err
	}
	m, err := mesh.Listen(mesh.Config{
		Credential: p.cred, Trust: trust, Codec: mesh.Wire(codec.NewOpener(trust, doctorBundles)), Bootstrap: p.cfg.Bootstrap,
		Nearby: p.cfg.MDNS, Deliver: func(protocol.Message) error { return nil }, HearPresence: true,
	})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := m.Joined(ctx); err != nil {
		return nil, err
	}
	return clockViews(m.Clocks(ctx)), nil
}
