package real

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ramp/agents/journal"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/user"
	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Names of files in an agent's books.
const (
	journalName = "journal.db"
	ledgerName  = "ledger.db"
	batchName   = "swf-reservations.json"
	marketName  = "market.json"
)

// marketFile describes the parties, and the outcomes that buyers learnt.
type marketFile struct {
	Sites    []string                     `json:"sites"`
	Users    []string                     `json:"users"`
	Currency string                       `json:"currency"`
	Credit   protocol.Credits             `json:"credit"` // of every user at first
	Cores    int                          `json:"cores"`  // of every site
	Told     map[string]map[string]string `json:"told"`
}

// keepBooks copies the agents' files from their disks.
func (m *market) keepBooks() error {
	list := names(m.cfg.Resources, m.cfg.Users)
	f := marketFile{
		Sites: list[1 : 1+m.cfg.Resources], Users: list[1+m.cfg.Resources:],
		Currency: currency, Credit: credit, Cores: cores, Told: m.notes.told,
	}
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	books := filepath.Join(m.cfg.Dir, booksDir)
	if err := os.WriteFile(filepath.Join(books, marketName), b, 0o600); err != nil {
		return err
	}
	for _, a := range m.fleet.agents {
		if err := copyBooks(a.disk.dir, filepath.Join(books, a.name)); err != nil {
			return fmt.Errorf("books of %s: %w", a.name, err)
		}
	}
	return nil
}

func copyBooks(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{journalName, journalName + boltfile.LogEnd, ledgerName, ledgerName + boltfile.LogEnd, batchName, "agent.pem", "agent.key", "ca.pem"} {
		err := copyFile(filepath.Join(from, name), filepath.Join(to, name))
		if !errors.Is(err, fs.ErrNotExist) { // not every kind of agent has every file
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// books are those of all agents.
type books struct {
	marketFile
	bank  bankBook
	users []userBook
	sites []siteBook
}

type bankBook struct {
	id        protocol.AgentID
	report    ledger.Report
	accounts  map[protocol.AgentID]ledger.Account
	decisions []ledger.Entry // settled and void, in order
	undecided []string
	holds     []string
}

type userBook struct {
	name      string
	id        protocol.AgentID
	purchases map[string]message.Purchase
	contracts map[string]contract.Verified // by purchase
}

type siteBook struct {
	name     string
	id       protocol.AgentID
	lines    []message.ReservationLine
	batch    map[string]protocol.Slot
	contrary []string // contracts with two different decisions signed by a bank
}

// readBooks reads the files that keepBooks has copied.
func readBooks(dir string, now time.Time) (b books, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, marketName))
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(raw, &b.marketFile); err != nil {
		return b, fmt.Errorf("%s: %w", marketName, err)
	}
	if b.bank, err = readBank(filepath.Join(dir, bankName), b.Currency, now); err != nil {
		return b, fmt.Errorf("%s: %w", bankName, err)
	}
	for _, name := range b.Users {
		u, err := readUser(filepath.Join(dir, name), name)
		if err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
		b.users = append(b.users, u)
	}
	for _, name := range b.Sites {
		s, err := b.readSite(filepath.Join(dir, name), name, now)
		if err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
		b.sites = append(b.sites, s)
	}
	return b, nil
}

// readCredential reads an agent's identity and trust anchors.
func readCredential(dir string) (*identity.Credential, *identity.Trust, error) {
	cert, err1 := os.ReadFile(filepath.Join(dir, "agent.pem"))
	key, err2 := os.ReadFile(filepath.Join(dir, "agent.key"))
	anchors, err3 := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	cred, err := identity.Parse(cert, key)
	if err != nil {
		return nil, nil, err
	}
	trust, err := identity.NewTrust(anchors, nil)
	return cred, trust, err
}

func readBank(dir, currency string, now time.Time) (bankBook, error) {
	b := bankBook{accounts: map[protocol.AgentID]ledger.Account{}}
	cred, _, err := readCredential(dir)
	if err != nil {
		return b, err
	}
	b.id = cred.ID
	db, err := ledgerdb.Open(filepath.Join(dir, ledgerName))
	if err != nil {
		return b, err
	}
	defer db.Close()
	if b.report, err = ledger.Audit(db); err != nil {
		return b, err
	}
	l, err := ledger.Load(ledger.Config{Bank: cred.ID, Currencies: []string{currency}}, now, db)
	if err != nil {
		return b, err
	}
	for _, a := range l.Accounts() {
		b.accounts[a.ID] = a
	}
	b.undecided, err = keys(db, ledger.TableGathering)
	if err == nil {
		b.holds, err = keys(db, ledger.TableHolds)
	}
	if err == nil {
		b.decisions, err = decisions(db)
	}
	return b, err
}

// decisions are the entries that settled or voided a contract.
func decisions(db *ledgerdb.DB) ([]ledger.Entry, error) {
	var list []ledger.Entry
	for next := uint64(1); ; {
		page, err := db.Entries(next, ledgerdb.MaxPage)
		if err != nil || len(page) == 0 {
			return list, err
		}
		for _, e := range page {
			if e.Kind == ledger.KindDraw { // settled out of a voucher
				e.Kind = ledger.KindSettle
			}
			if e.Kind == ledger.KindSettle || e.Kind == ledger.KindVoid {
				list = append(list, e)
			}
		}
		next = page[len(page)-1].Number + 1
	}
}

// keys lists the keys of a table, as text.
func keys(t protocol.Tables, table string) ([]string, error) {
	var list []string
	err := t.Each(table, func(key string, _ []byte) error {
		list = append(list, fmt.Sprintf("%x", key))
		return nil
	})
	return list, err
}

func readUser(dir, name string) (userBook, error) {
	u := userBook{name: name, purchases: map[string]message.Purchase{}, contracts: map[string]contract.Verified{}}
	cred, trust, err := readCredential(dir)
	if err != nil {
		return u, err
	}
	u.id = cred.ID
	j, err := journal.Open(filepath.Join(dir, journalName), 0)
	if err != nil {
		return u, err
	}
	defer j.Close()
	err = j.Each(user.TablePurchases, func(key string, value []byte) error {
		row, err := user.ReadRow(value)
		u.purchases[key] = row.View()
		return err
	})
	if err != nil {
		return u, err
	}
	return u, j.Each(reserve.TableBundles, func(key string, value []byte) error {
		saved, err := reserve.ReadSaved(value)
		if err != nil {
			return err
		}
		u.contracts[key], err = contract.OpenBundle(saved.Bundle, trust, saved.SignedAt)
		return err
	})
}

func (b *books) readSite(dir, name string, now time.Time) (siteBook, error) {
	s := siteBook{name: name, batch: map[string]protocol.Slot{}}
	cred, _, err := readCredential(dir)
	if err != nil {
		return s, err
	}
	s.id = cred.ID
	j, err := journal.Open(filepath.Join(dir, journalName), 0)
	if err != nil {
		return s, err
	}
	defer j.Close()
	cfg := resource.Config{
		TrustJournal: true, // it is only read
		Credential:   cred, Properties: protocol.Properties{Cores: b.Cores}, Price: pricing.Band{Start: protocol.Credit, Min: protocol.Credit},
		Terms: []protocol.Terms{{Bank: b.bank.id, Currency: b.Currency}},
	}
	role, _, err := resource.New(cfg, j, now) // its Output is not carried out
	if err != nil {
		return s, err
	}
	s.lines = role.Reservations()
	if s.contrary, err = keys(j, reserve.TableContrary); err != nil {
		return s, err
	}
	return s, s.readBatch(filepath.Join(dir, batchName))
}

// readBatch reads the file of the site's batch system.
func (s *siteBook) readBatch(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var f struct {
		Reservations []struct {
			ID   string
			Slot protocol.Slot
		}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range f.Reservations {
		s.batch[r.ID] = r.Slot
	}
	return nil
}
