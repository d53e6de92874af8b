// Package wan is a wide-area network on one machine. Each host is a network namespace. The link
// between two hosts has a delay, jitter and loss, can be cut, and may change while programs
// communicate. It needs Linux, root and /dev/net/tun, but no kernel traffic control.
//
//	program -> its kernel -> TUN of host a -> WAN.forward -> inbox of b -> TUN of host b -> kernel -> program
//
// Nothing outlives the process that created a WAN, however it ends: namespaces have no names,
// devices disappear, and programs started by Host.Start are killed. Only background processes of
// those programs can remain: Close kills them, a crash leaves them without a network.
//
// Queues are bounded. Like a router, a full one drops packets and counts them.
package wan
