// Package wan is a wide-area network on one machine: hosts that are network
// namespaces of their own, and between any two of them a link with a delay, a
// jitter, a loss, and cuts, all of which may change while programs talk. It needs
// Linux, root and /dev/net/tun, and nothing of the kernel's traffic control.
//
//	program -> its kernel -> TUN of host a -> WAN.forward -> inbox of b -> TUN of host b -> kernel -> program
//
// Nothing outlives the process that has made a WAN, however that ends: no
// namespace has a name, no device stays, and programs started by Host.Start are
// killed with it. So there is nothing to clean up after a crash, but for what those
// programs have left in the background: Close kills that too, a crash leaves it
// without a network.
//
// Queues are bounded; what does not fit is dropped and counted, as by a router.
package wan
