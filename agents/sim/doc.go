// Package sim runs agents in a world of its own: one goroutine, a virtual clock,
// a network, disks and hosts that break, all of it drawn from one seed.
//
// The agents are the real ones: their roles, the bytes and signatures of the
// codec, and the order of saving and sending of agents.Outbox. Only the network,
// the clock, the disks and the local correspondents are the world's. The same
// seed, configuration and version give the same run, event by event, and the same
// Hash; how many processors there are does not matter.
//
//	Tell, alarm, message --> role --Output--> Outbox --disk--> seal --> network
//	                          ^                                           |
//	                          +------------------- open <-----------------+
//
// A World knows nothing of markets. Package market, below, puts users, resources
// and banks into one and says what must hold; anything that is an agents.Role can
// be put beside them, honest or not.
package sim
