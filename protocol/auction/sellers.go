package auction

import (
	"container/list"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of a seller's memory of running auctions. At each bound it forgets the oldest
// auction, and tells the buyer at its next call.
const (
	MaxAuctions         = 4096     // in total
	MaxAuctionsPerBuyer = 256      // so that one buyer cannot push out the others
	MaxQuotesPerBuyer   = 64       // besides; nobody ends them, and they must not push out purchases
	MaxAuctionBytes     = 64 << 20 // of their documents together
)

// Sellers is one seller's side of all running auctions.
type Sellers struct {
	cfg      SellerConfig
	live     map[auctionKey]*list.Element
	order    *list.List // of *sellerAuction, oldest first
	perBuyer map[shareKey]int
	bytes    int
}

// auctionKey keeps a conversation its buyer's own: the same conversation-id from
// another agent is another auction.
type auctionKey struct {
	buyer        protocol.AgentID
	conversation string
}

// shareKey is a buyer's purchases, or its quotes.
type shareKey struct {
	buyer protocol.AgentID
	quote bool
}

func (k auctionKey) share() shareKey { return shareKey{k.buyer, protocol.IsQuote(k.conversation)} }

// most bounds the auctions that count for a share.
func (k shareKey) most() int {
	if k.quote {
		return MaxQuotesPerBuyer
	}
	return MaxAuctionsPerBuyer
}

type sellerAuction struct {
	key    auctionKey
	seller *Seller
}

// NewSellers makes a seller without auctions.
func NewSellers(cfg SellerConfig) *Sellers {
	if cfg.Read == nil {
		cfg.Read = NewReader()
	}
	return &Sellers{cfg: cfg, live: map[auctionKey]*list.Element{}, order: list.New(), perBuyer: map[shareKey]int{}}
}

// Retune takes the prices and times of cfg, for running auctions too. Existing offers stand.
func (s *Sellers) Retune(cfg SellerConfig) {
	s.cfg.Pricing, s.cfg.Validity, s.cfg.Lead, s.cfg.Horizon, s.cfg.Longest = cfg.Pricing, cfg.Validity, cfg.Lead, cfg.Horizon, cfg.Longest
}

// Call answers a call for proposals. It keeps silent if the round is over, or if the
// call has a budget and the seller was not chosen or has no offer.
func (s *Sellers) Call(now time.Time, m protocol.Message, call message.CallForProposals, cal Calendar) (Answer, bool) {
	if call.Round < 1 || call.Round > protocol.MaxRounds {
		return refuseAll(call.Round, protocol.CodeMalformed, fmt.Sprintf("round %d, want 1..%d", call.Round, protocol.MaxRounds)), true
	}
	if !Chosen(m.Conversation, call.Round, s.cfg.Self, call.Budget, call.Among) {
		return Answer{}, false
	}
	a, ok := s.answer(now, m, call, cal)
	if call.Budget > 0 && a.Performative == protocol.Refuse {
		return Answer{}, false // the buyer has called more sellers than it can listen to
	}
	return a, ok
}

// answer answers a call by name.
func (s *Sellers) answer(now time.Time, m protocol.Message, call message.CallForProposals, cal Calendar) (Answer, bool) {
	key := auctionKey{m.Sender, m.Conversation}
	e, known := s.live[key]
	if !known {
		if len(call.Document) == 0 {
			return refuseAll(call.Round, protocol.CodeUnknown, "unknown auction; call with its document"), true
		}
		seller, err := newSeller(&s.cfg, key.buyer, call)
		if err != nil {
			return refuseAll(call.Round, protocol.CodeMalformed, clip(err.Error())), true
		}
		e = s.add(key, seller)
	} else if len(call.Document) > 0 && documentHash(call.Document) != e.Value.(*sellerAuction).seller.hash {
		return refuseAll(call.Round, protocol.CodeMismatch, "this conversation is about another document"), true
	}
	a, ok := e.Value.(*sellerAuction).seller.Call(now, call, cal)
	for i := range a.Lines {
		a.Lines[i].At, a.Lines[i].Buyer, a.Lines[i].Conversation = now, key.buyer, key.conversation
	}
	return a, ok
}

func refuseAll(round int, code protocol.Code, note string) Answer {
	return Answer{
		Performative: protocol.Refuse,
		Body:         message.Refusal{Round: round, Reasons: []protocol.Reason{{Code: code, Unit: protocol.AllUnits, Note: note}}},
	}
}

// clip keeps a note for people within its bound.
func clip(s string) string { return s[:min(len(s), protocol.MaxWords)] }

// Offer finds a live offer, and the hash of its document.
func (s *Sellers) Offer(now time.Time, buyer protocol.AgentID, conversation, id string) (o protocol.Offer, document string, ok bool) {
	e, known := s.live[auctionKey{buyer, conversation}]
	if !known {
		return o, "", false
	}
	seller := e.Value.(*sellerAuction).seller
	o, ok = seller.Offer(now, id)
	return o, seller.hash, ok
}

// Forget ends an auction after its buyer has rejected the offers.
func (s *Sellers) Forget(buyer protocol.AgentID, conversation string) {
	if e, ok := s.live[auctionKey{buyer, conversation}]; ok {
		s.remove(e)
	}
}

func (s *Sellers) add(key auctionKey, seller *Seller) *list.Element {
	share := key.share()
	if s.perBuyer[share] >= share.most() {
		s.remove(s.oldestOf(share))
	}
	for s.order.Len() > 0 && (s.order.Len() >= MaxAuctions || s.bytes+seller.size > MaxAuctionBytes) {
		s.remove(s.order.Front())
	}
	e := s.order.PushBack(&sellerAuction{key, seller})
	s.live[key] = e
	s.perBuyer[share]++
	s.bytes += seller.size
	return e
}

func (s *Sellers) oldestOf(share shareKey) *list.Element {
	e := s.order.Front()
	for e.Value.(*sellerAuction).key.share() != share {
		e = e.Next()
	}
	return e
}

func (s *Sellers) remove(e *list.Element) {
	a := s.order.Remove(e).(*sellerAuction)
	delete(s.live, a.key)
	s.bytes -= a.seller.size
	share := a.key.share()
	if s.perBuyer[share]--; s.perBuyer[share] == 0 {
		delete(s.perBuyer, share)
	}
}

// Check shows what a seller would offer for a document, round by round, if another
// seller met its price in every round. It has no lasting effect.
func Check(cfg SellerConfig, now time.Time, call message.CallForProposals, rounds int, cal Calendar) ([]message.QuoteLine, error) {
	cfg.Read = Read
	s, err := newSeller(&cfg, cfg.Self, call) // a buyer without a program
	if err != nil {
		return nil, err
	}
	var lines []message.QuoteLine
	for call.Round = 1; call.Round <= rounds; call.Round++ {
		a, _ := s.Call(now, call, cal)
		for i := range a.Lines {
			a.Lines[i].At = now
			if o := a.Lines[i].Offer; o != nil {
				s.units[a.Lines[i].Unit].ceiling = o.Items[0].Price
			}
		}
		lines = append(lines, a.Lines...)
		s.standAside()
	}
	return lines, nil
}

// standAside lets the seller bid below its own last price.
func (s *Seller) standAside() {
	for i := range s.units {
		s.units[i].offer = nil
	}
}
