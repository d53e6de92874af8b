package doctor

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

	"ramp/agents/background"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/join"
	"ramp/agents/journal"
	"ramp/agents/mesh"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
)

const (
	doctorBundles = 16      // size of the cache of verified bundles: nobody sends any
	diskLow       = 1 << 30 // warn below this many free bytes
	dialTime      = 3 * time.Second
)

// checkDirectory checks that the directory is writable, and the permissions of the key.
func (p *examination) checkDirectory() {
	switch err := p.tryWriting(); {
	case errors.Is(err, syscall.ENOSPC):
		return // checkDisk reports it
	case err != nil:
		p.bad("directory", "the agent must be able to write there: mount it writable, or give it to this user", "%s", err)
		return
	}
	key, err := os.Stat(filepath.Join(p.dir, join.AgentKeyFile))
	if err == nil && key.Mode().Perm()&0o077 != 0 {
		p.warn("directory", "chmod 600 "+filepath.Join(p.dir, join.AgentKeyFile), "others can read the private key (%s)", key.Mode().Perm())
		return
	}
	p.good("directory", "it is writable")
}

// tryWriting writes a page, and removes it again.
func (p *examination) tryWriting() error {
	f, err := os.CreateTemp(p.dir, ".doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, os.Getpagesize()))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// checkDisk checks the free space, for a site also where its jobs run.
func (p *examination) checkDisk() {
	dirs := []string{p.dir}
	if cfg, err := config.Read(filepath.Join(p.dir, config.Name)); err == nil { // checkConfiguration reports an error
		dirs = cfg.Places()
	}
	free := int64(math.MaxInt64)
	for _, dir := range dirs {
		r, err := config.SpaceAt(dir)
		if err != nil {
			p.warn("disk", "", "cannot determine the free space: %s", err)
			return
		}
		if why := r.Full(); why != "" {
			p.bad("disk", config.DiskHelp, "%s", why)
			return
		}
		free = min(free, r.Free)
	}
	if free < diskLow {
		p.warn("disk", config.DiskHelp, "%d MB free", free>>20)
		return
	}
	p.good("disk", "%d GB free", free>>30)
}

// checkDaemon checks whether the daemon answers; if none runs, it checks the files that it left.
func (p *examination) checkDaemon() {
	d, ok := control.Meet(p.dir)
	if ok && p.follows(d) {
		return
	}
	if ok {
		p.daemon = d
		log := ""
		if file := filepath.Join(p.dir, background.LogName); config.IsThere(file) {
			log = "; its log is " + file
		}
		p.good("daemon", "it answers on %s%s", control.SocketPath(p.dir), log)
		return
	}
	file := p.cfg.DataFile()
	who, err := boltfile.Holder(file)
	switch {
	case err != nil:
		p.bad("daemon", "", "%s", err)
		return
	case who != nil:
		p.bad("daemon", "wait until it is done, or kill it; even after kill -9 nothing is lost", "%s, and does not answer", who)
		return
	case config.IsThere(control.SocketPath(p.dir)):
		p.warn("daemon", "the next 'ramp "+p.cfg.Kind()+" serve' replaces it", "it does not run; an earlier one died and left its socket")
	default:
		p.good("daemon", "it does not run")
	}
	p.checkJournal(file)
}

// follows reports whether a bank's daemon does not lead, and so cannot be asked further.
func (p *examination) follows(d *control.Client) bool {
	var s control.LiveStatus
	ctx, cancel := context.WithTimeout(context.Background(), control.StatusCallTime)
	defer cancel()
	if p.cfg.Bank == nil || control.Agent.Ask(ctx, d, struct{}{}, &s) != nil {
		return false
	}
	switch {
	case s.Waits != "":
		p.bad("daemon", "check the etcd cluster: 'etcdctl endpoint status --cluster'", "%s", s.Waits)
	case s.Follows != "":
		p.good("daemon", "it is a follower; %s leads", s.Follows)
	}
	return s.Standby()
}

// checkJournal opens the journal or ledger, if it exists, and closes it.
func (p *examination) checkJournal(file string) {
	if !config.IsThere(file) {
		p.good("journal", "none yet")
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
		if j, err = journal.Open(file, node.TraceBytes); err == nil {
			err = j.Close()
		}
	}
	if err != nil {
		p.bad("journal", journalHelp(err), "%s", err)
		return
	}
	p.good("journal", "%s is readable", file)
}

// journalHelp is the hint for a journal that cannot be opened.
func journalHelp(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "the agent must be able to write its files: mount them writable, or give them to this user"
	case errors.Is(err, boltfile.ErrNewer):
		return "use the version of the program that wrote it, or restore an older backup"
	}
	return "restore it from a backup"
}

// checkBatch checks whether a site's batch system answers, and can hold a sold slot.
func (p *examination) checkBatch() {
	if p.cfg.Resource == nil {
		return
	}
	switch h, err := p.cfg.Held(p.cred.ID); {
	case err != nil:
		p.fault("batch system", err)
	case !h.OK:
		p.bad("batch system", "", "%s answers, but cannot create %s: %s", p.cfg.Resource.Driver, h.What, h.Why)
	default:
		p.good("batch system", "%s: a sold slot will be %s", p.cfg.Resource.Driver, h.What)
	}
}

// checkFederation checks whether a site's federation has its cores.
func (p *examination) checkFederation(ctx context.Context) {
	var q control.SiteQueue
	if p.daemon != nil && control.FederationQueue.Ask(ctx, p.daemon, control.None{}, &q) == nil && q.Shortage != "" {
		help := "wait until they are free, or change resource.federation.cores"
		if q.Rules == "" { // the site has left it
			help = "wait until its jobs have ended"
		}
		p.warn("federation", help, "%s", q.Shortage)
	}
}

// checkListen checks that the addresses are free, unless the daemon listens on them.
func (p *examination) checkListen() {
	if p.daemon != nil {
		return
	}
	for _, a := range p.cfg.Listen {
		host, ok := mesh.HostPort(a)
		if !ok {
			p.warn("listen", "use one such as /ip4/0.0.0.0/tcp/4101", "cannot check %s", a)
			continue
		}
		l, err := net.Listen("tcp", host)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			p.bad("listen", "choose another port under 'listen', or stop that process", "%s: another process listens there", a)
		case err != nil:
			p.bad("listen", "choose an address of this machine under 'listen'", "%s: %s", a, err)
		default:
			_ = l.Close()
			p.good("listen", "%s is free", a)
		}
	}
}

// checkBootstrap checks whether the bootstrap addresses answer, and reports whether the market may
// be reachable.
func (p *examination) checkBootstrap(ctx context.Context) bool {
	p.checkMDNS()
	if len(p.cfg.Bootstrap) == 0 {
		if p.cfg.MDNS {
			return true
		}
		if p.cfg.Bank == nil {
			p.warn("bootstrap", "'ramp user init --join INVITATION' writes some; 'mdns: true' finds agents on this network", "there are no addresses to join by")
		}
		return p.daemon != nil
	}
	answered := 0
	var silent []string
	for _, a := range p.cfg.Bootstrap {
		host, ok := mesh.HostPort(a)
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
		p.warn("bootstrap", "remove it from 'bootstrap' if it is gone", "nobody answers at %s; %d others do", strings.Join(silent, ", "), answered)
	case answered == 1:
		p.good("bootstrap", "it answers")
	default:
		p.good("bootstrap", "all %d answer", answered)
	}
	return answered > 0
}

// checkMDNS checks whether others on this network can find this agent.
func (p *examination) checkMDNS() {
	switch {
	case !p.cfg.MDNS:
	case config.OnlyLocal(p.cfg.Listen):
		p.warn("mdns", "listen on /ip4/0.0.0.0/tcp/PORT", "other machines cannot reach the addresses that they would find: %s", strings.Join(p.cfg.Listen, ", "))
	case !hasMulticast():
		p.warn("mdns", "give addresses under 'bootstrap'", "no network interface of this machine supports multicast")
	default:
		p.good("mdns", "agents on this network find each other")
	}
}

// hasMulticast reports whether a network interface that is up supports multicast.
func hasMulticast() bool {
	all, err := net.Interfaces()
	const both = net.FlagUp | net.FlagMulticast
	return err == nil && slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&both == both })
}

// checkClock compares this machine's clock with those of reachable agents.
func (p *examination) checkClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ClocksTime)
	defer cancel()
	list, err := p.askClocks(ctx)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if ctx.Err() != nil && p.daemon != nil {
			first = "nobody answered the daemon within " + ClocksTime.String()
		}
		if errors.Is(err, mesh.ErrCutOff) {
			p.bad("market", node.CutOffHint, "%s", first)
			return
		}
		p.warn("clock", "", "no other agent reports its time: %s", first)
		return
	}
	if len(list) == 0 && p.daemon != nil && len(p.cfg.Bootstrap) > 0 {
		p.warn("market", node.CutOffHint, "the daemon is connected to no other agent")
		return
	}
	if len(list) == 0 {
		p.warn("clock", "", "there is no other agent to compare it with")
		return
	}
	switch k := checkClocks(list); {
	case k.Off == 0:
		p.good("clock", "within %s of %s", time.Duration(max(abs(k.Worst.AheadMS), k.Worst.WithinMS)+1)*time.Millisecond, words.Plural(len(list), "other agent"))
	case k.WrongHere():
		p.bad("clock", ClockHelp+protocol.ClockSkew.String(), "%s", k.Words())
	default:
		p.warn("clock", "tell its owner", "that of %s is %s this one; the others agree with this one", k.Worst.Agent.Name(), aheadWords(k.Worst.AheadMS))
	}
}

// askClocks asks the daemon, or joins the market briefly.
func (p *examination) askClocks(ctx context.Context) ([]control.ClockView, error) {
	if p.daemon != nil {
		var list []control.ClockView
		err := control.Clocks.Ask(ctx, p.daemon, struct{}{}, &list)
		return list, err
	}
	if len(p.cfg.Bootstrap) == 0 && !p.cfg.MDNS {
		return nil, nil
	}
	trust, err := p.cfg.TrustAnchors()
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
	if err := m.Acquainted(ctx); err != nil {
		return nil, err
	}
	return node.ClockViews(m.Clocks(ctx)), nil
}
