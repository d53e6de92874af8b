package ledgeretcd

import "context"

// ClearLate is what a leader does that has read the journal before it was paused.
func ClearLate(ctx context.Context, s *Store) error { return s.clear(ctx, s.lead) }

func (s *Store) JournalKey(n uint64) string { return s.journalKey(n) }
