package protocol

// Bid is an offer and its seller. Every kind of auction hands its winners to a commit in this form.
type Bid struct {
	Seller AgentID
	Offer  Offer
}

// BidKey names a bid among those of one conversation.
type BidKey struct {
	Seller AgentID
	Offer  string
}

// Key returns the name of the bid.
func (b Bid) Key() BidKey { return BidKey{b.Seller, b.Offer.ID} }
