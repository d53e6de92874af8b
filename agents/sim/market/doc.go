// Package market puts a whole market into a simulated world: users who buy,
// sites that sell, banks that settle, all of them the agents of the live system,
// and says at every step what must not be (protocol.md, "What must always hold").
//
// A market is drawn from its Config: the same one gives the same market, order
// by order.
package market
