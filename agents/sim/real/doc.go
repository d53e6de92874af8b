// Package real runs a market of real processes behind a WAN, injects faults for a while, and
// then compares the books of all agents: nothing may be lost or half-done.
//
// Every agent is a process with its own key, journal, disk and network namespace. A plan
// drawn from one seed decides which agents are killed, stopped, cut off or run out of disk
// space, and when. After the last fault everything has a fixed time to finish; then the
// processes end, and Compare reads the bank's entries, the journals and the batch systems'
// files from their disks. It does not rely on what agents report.
//
//	build --all have met--> break --time over--> heal --quiet--> stop --copies--> compare
//
// A Trial is such a market without faults, on ordinary directories, to measure users who buy
// at the same time across a network.
//
// Disks are ext4 images on loop devices, so that a full one fails like a real disk: in the
// middle of a file, with ENOSPC. The package needs Linux, root, /dev/net/tun, loop devices
// and mkfs.ext4. It leaves nothing behind, however it ends: see OwnMounts.
package real
