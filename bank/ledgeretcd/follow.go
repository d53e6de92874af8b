package ledgeretcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// becomeFollower applies the journal until this agent leads and has all of it.
func (s *Store) becomeFollower(ctx context.Context) error {
	if err := s.restore(); err != nil {
		return err
	}
	leader, logged, silent := "", "", false
	s.follows("", nil)
	for {
		l, err := s.follow(ctx, &leader)
		switch {
		case errors.Is(err, ErrDamaged), errors.Is(err, ErrForeign), errors.Is(err, ErrUnfinished):
			return err
		case err != nil && ctx.Err() == nil && !silent:
			s.cfg.Log.Warn("the etcd cluster does not answer", "endpoints", s.cfg.Endpoints, "err", err)
		case l != nil:
			s.lead = l
			return nil
		}
		if ctx.Err() != nil && !silent && logged != "" {
			return fmt.Errorf("%w: %s", ErrLed, logged) // the time ended during the last poll
		}
		s.follows(leader, err)
		silent = err != nil
		if leader != logged && !silent {
			s.cfg.Log.Info("following", "leader", leader, "entries", s.next-1)
			logged = leader
		}
		if !pause(ctx, pollEvery) {
			return waited(ctx, leader, err)
		}
	}
}

func (s *Store) follows(leader string, err error) {
	if s.cfg.Follows != nil {
		s.cfg.Follows(leader, err)
	}
}

// waited is the error of a follower whose time is over.
func waited(ctx context.Context, leader string, err error) error {
	if leader != "" && err == nil {
		return fmt.Errorf("%w: %s", ErrLed, leader)
	}
	return errors.Join(ctx.Err(), err)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow reads new entries. If nobody leads it tries to win the election, and returns it
// after it has read the journal to its end again: nobody else writes then.
func (s *Store) follow(ctx context.Context, leader *string) (*lead, error) {
	if !s.known {
		if err := s.belongs(ctx); err != nil {
			return nil, err
		}
		s.known = true
	}
	name, err := s.readOn(ctx)
	*leader = name
	if err != nil || name != "" {
		return nil, err
	}
	l, err := win(ctx, s.cluster, s.leaderKey(), s.cfg.Name, s.cfg.Lease)
	if err != nil || l == nil {
		return nil, err
	}
	if err := s.takeOver(ctx, l); err != nil {
		l.resign(ctx)
		if errors.Is(err, ErrDeposed) { // it took too long
			err = nil
		}
		return nil, err
	}
	return l, nil
}

func (s *Store) takeOver(ctx context.Context, l *lead) error {
	if err := s.belongs(ctx); err != nil { // the cluster may have gone back
		return err
	}
	if _, err := s.readOn(ctx); err != nil {
		return err
	}
	if err := s.finished(); err != nil {
		return err
	}
	return s.clear(ctx, l)
}

// clear removes the parts of a leader that died before it wrote its entry, unless another one leads by now.
func (s *Store) clear(ctx context.Context, l *lead) error {
	left := getRange{Key: []byte(s.partsOf(s.next)), End: []byte(s.partsOf(s.next + 1))}
	answer, err := s.cluster.do(ctx, askMost, transaction{If: []condition{createdAt(s.leaderKey(), l.term)}, Then: []request{{Delete: &left}}})
	if err == nil && !answer.Succeeded {
		err = ErrDeposed
	}
	return err
}

// readOn applies the journal to its end, and returns the leader at that moment.
func (s *Store) readOn(ctx context.Context) (leader string, err error) {
	for {
		leader, page, err := s.page(ctx)
		if err != nil {
			return "", err
		}
		for _, r := range page {
			if err := s.apply(ctx, r); err != nil {
				return "", err
			}
		}
		if len(page) < pageLength {
			return leader, nil
		}
	}
}

// page reads the next entries and the leader, at one moment.
func (s *Store) page(ctx context.Context) (leader string, page []pair, err error) {
	entries := getRange{Key: []byte(s.journalKey(s.next)), End: []byte(s.key("journal0")), Limit: pageLength}
	answer, err := s.cluster.do(ctx, askMost, transaction{
		Then: []request{{Get: &getRange{Key: []byte(s.leaderKey())}}, {Get: &entries}},
	})
	if err != nil {
		return "", nil, err
	}
	for _, r := range answer.Responses[0].Range.Rows {
		leader = "(no name)"
		if len(r.Value) > 0 {
			leader = string(r.Value)
		}
	}
	return leader, answer.Responses[1].Range.Rows, nil
}

// apply saves the next entry of the journal in the mirror.
func (s *Store) apply(ctx context.Context, r pair) error {
	if want := s.journalKey(s.next); string(r.Key) != want {
		return fmt.Errorf("%w: %s follows entry %d", ErrDamaged, r.Key, s.next-1)
	}
	h, payload, hash, err := s.read(ctx, s.next, r.Value)
	if err != nil {
		return err
	}
	if h.previous != s.previous {
		return fmt.Errorf("%w: entry %d does not follow the one before it", ErrDamaged, s.next)
	}
	e, err := DecodeEntry(payload)
	if err != nil {
		return fmt.Errorf("entry %d: %w", s.next, err)
	}
	if err := s.db.Apply(append(e.Records, position(s.next, hash)), e.Head); err != nil {
		return fmt.Errorf("entry %d of the journal: %w", s.next, err)
	}
	s.next, s.previous = s.next+1, hash
	return nil
}

func (s *Store) read(ctx context.Context, number uint64, value []byte) (h header, payload []byte, hash [sha256.Size]byte, err error) {
	h, payload, err = decodeHeader(value)
	if err != nil {
		return h, nil, hash, fmt.Errorf("entry %d: %w", number, err)
	}
	if h.parts == 0 {
		return h, payload, hashEntry(value, nil), nil
	}
	for i := range h.parts {
		part, err := s.part(ctx, s.partKey(number, h.term, i))
		if err != nil {
			return h, nil, hash, fmt.Errorf("entry %d, part %d: %w", number, i, err)
		}
		payload = append(payload, part...)
	}
	return h, payload, hashEntry(value, payload), nil
}

func (s *Store) part(ctx context.Context, key string) ([]byte, error) {
	rows, err := s.cluster.get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: it is missing", ErrDamaged)
	}
	return rows[0].Value, nil
}

func (s *Store) restore() error {
	s.next = 1
	rows := 0
	err := s.db.Each(positionTable, func(key string, v []byte) error {
		if key == unfinishedKey {
			return nil
		}
		if rows++; len(v) != positionSize {
			return fmt.Errorf("damaged: the mirror's position has %d octets", len(v))
		}
		s.next = binary.BigEndian.Uint64(v) + 1
		s.previous = [sha256.Size]byte(v[8:])
		return nil
	})
	if err == nil && rows == 0 {
		err = s.mustBeEmpty()
	}
	return err
}

// mustBeEmpty checks that a file without a position has no ledger in it.
func (s *Store) mustBeEmpty() error {
	if es, err := s.db.Entries(1, 1); err != nil || len(es) > 0 {
		return errors.Join(fmt.Errorf("%w: %s is a ledger of its own", ErrForeign, s.db.Path()), err)
	}
	return nil
}

// belongs checks that the mirror's last entry is in the journal.
func (s *Store) belongs(ctx context.Context) error {
	if s.next == 1 {
		return nil
	}
	n := s.next - 1
	value, err := s.part(ctx, s.journalKey(n))
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	if err == nil {
		if _, _, hash, err := s.read(ctx, n, value); err != nil || hash == s.previous {
			return err
		}
	}
	return fmt.Errorf("%w: it lacks entry %d of %s", ErrForeign, n, s.db.Path())
}
