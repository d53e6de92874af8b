// Package market runs a whole market in a simulated world: users buy, sites sell and banks
// settle, all of them agents of the live system. It checks the invariants at every step
// (protocol.md, "What must always hold").
//
// A market is drawn from its Config: the same one gives the same market, order by order.
package market
