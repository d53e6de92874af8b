package resource

import "ramp/protocol"

// ListPrice is the price per core-hour at which the site opens.
func (r *Role) ListPrice() protocol.Credits { return r.cfg.Price.Start }

// Retune takes the prices and limits of c: the price band, how long offers stand,
// how far ahead and how soon the site sells, and how much a buyer may hold. It ignores
// the rest of c. Offers and promises stand; the next presence announces the new prices.
// It returns the Config as it is now; c must be valid.
func (r *Role) Retune(c Config) Config {
	c = c.filled()
	next := r.cfg
	next.Price, next.Validity, next.Lead, next.Horizon = c.Price, c.Validity, c.Lead, c.Horizon
	next.Hold, next.BuyerHolds, next.BuyerCoreSeconds = c.Hold, c.BuyerHolds, c.BuyerCoreSeconds
	r.cfg = next
	r.sellers.Retune(r.seller())
	r.promises.Retune(next.Hold, next.BuyerHolds, next.BuyerCoreSeconds)
	return next
}
