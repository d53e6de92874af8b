package ledgeretcd_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"ramp/agents"
	"ramp/bank/ledger"
	"ramp/bank/ledgeretcd"
	"ramp/protocol"
)

// agentEnv makes a copy of the test a bank agent of the name that it has.
const agentEnv = "RAMP_LEDGERETCD_AGENT"

// directoryEnv is where the agent's mirror is.
const directoryEnv = "RAMP_LEDGERETCD_DIR"

const accounts = 64

func account(i int) protocol.AgentID {
	h := sha256.Sum256(binary.BigEndian.AppendUint32(nil, uint32(i)))
	return protocol.AgentID(fmt.Sprintf("agent%d@%s", i, strings.ToLower(base32.StdEncoding.EncodeToString(h[:20]))))
}

// bank is a ledger as a role: it only does what it is called for.
type bank struct{ *ledger.Ledger }

func (bank) Receive(time.Time, protocol.Message) protocol.Output { return protocol.Output{} }
func (bank) Wake(time.Time) protocol.Output                      { return protocol.Output{} }

func loadBank(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
	var out protocol.Output
	l, err := ledger.Load(ledger.Config{Bank: account(-1), Currencies: []string{"CR"}}, now, t)
	if err != nil {
		return nil, out, err
	}
	for i := range accounts {
		if _, ok := l.Account(account(i)); ok {
			continue
		}
		_, records, err := l.Open(now, account(i), fmt.Sprint("a", i))
		if err != nil {
			return nil, out, err
		}
		out.Save = append(out.Save, records...)
	}
	return bank{l}, out, nil
}

// runAgent follows and leads, again and again, and says on its output when it
// leads and where it answers.
func runAgent(name string) int {
	cfg := ledgeretcd.Config{
		Endpoints: strings.Split(os.Getenv(endpointsEnv), ","), Bank: account(-1), Name: name,
		Mirror: os.Getenv(directoryEnv) + "/" + name + ".db", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	for {
		s, err := ledgeretcd.Open(context.Background(), cfg)
		if err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			return 1
		}
		serveAgent(s)
	}
}

// serveAgent answers until the store is lost.
func serveAgent(s *ledgeretcd.Store) {
	runner := agents.NewRunner(agents.Config{
		Load: loadBank, Store: s, Route: func(protocol.Message) {},
		Unavailable: func(protocol.Message) (protocol.Message, bool) { return protocol.Message{}, false },
		Now:         time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = runner.Run(ctx) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	wg.Go(func() { accept(l, s, runner) })
	fmt.Println("leading", l.Addr())
	<-s.Lost()
	fmt.Println("lost")
	_ = l.Close()
	cancel()
	wg.Wait()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close:", err)
	}
}

func accept(l net.Listener, s *ledgeretcd.Store, r *agents.Runner) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for lines := bufio.NewScanner(c); lines.Scan(); {
				answer, err := act(s, r, strings.Fields(lines.Text()))
				if err != nil {
					return // the caller does not know what became of it
				}
				fmt.Fprintln(c, int64(answer))
			}
		}()
	}
}

// act does what a line asks for: "add ACCOUNT REF" or "read ACCOUNT".
func act(s *ledgeretcd.Store, r *agents.Runner, words []string) (balance protocol.Credits, err error) {
	id := protocol.AgentID(words[1])
	failed := r.Do(context.Background(), func(now time.Time, role agents.Role) (out protocol.Output) {
		l := role.(bank).Ledger
		if words[0] == "add" {
			_, out.Save, err = l.Credit(now, id, "CR", 1, words[2])
		}
		a, _ := l.Account(id)
		for _, line := range a.Lines {
			balance = line.Balance
		}
		return out
	})
	if failed != nil {
		return 0, failed
	}
	if words[0] == "read" && !s.Leading() {
		return 0, ledgeretcd.ErrDeposed
	}
	return balance, err
}
