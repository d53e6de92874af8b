package index

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Put has a server keep a record.
func (s *Server) Put(now time.Time, r message.Record) error { return s.table.put(now, r) }

// Query answers a query.
func (s *Server) Query(now time.Time, q message.IndexQuery) []message.IndexRow {
	return s.table.deal(now, q, func() int { return 0 })
}

// Kept counts the records of each issuer.
func (s *Server) Kept() map[string]int {
	counts := map[string]int{}
	for issuer, l := range s.table.issuers {
		counts[issuer] = l.Len()
	}
	return counts
}

// Held is the number of records.
func (s *Server) Held() int { return len(s.table.by) }

// Census is that of the last Beat.
func (s *Server) Census() []message.Census { return s.census }

// Avoided reports whether a Guide avoids a server.
func (g *Guide) Avoided(now time.Time, id protocol.AgentID) bool {
	return now.Before(g.homes.by[id].avoided)
}

// Median is the upper one.
func Median(list []int) int { return median(list) }

// Examined counts the shards whose homes a digest works out.
func (s *Server) Examined() (n int) {
	s.table.digest(func(shelf) int { return 0 }, func(message.Shard) bool { n++; return true })
	return n
}
