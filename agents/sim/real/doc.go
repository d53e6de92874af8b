// Package real runs a market of real processes behind a WAN, breaks it for a
// while, and then compares everybody's books: nothing lost, nothing half-done.
//
// Every agent is a process of its own with its own key, journal, disk and network
// namespace. A plan that one number decides says who is killed, stopped, cut
// off or left without room on its disk, and when. Then faults stop, everything has
// a stated time to finish, the processes are asked to leave, and Compare reads what
// they have left on their disks. It asks no agent: it reads the bank's entries, the
// journals and the batch systems' files.
//
//	build --all have met--> break --time over--> heal --quiet--> stop --copies--> compare
//
// A Trial is such a market that nobody breaks, on ordinary directories: for
// measurements of users who buy at once across a network.
//
// Disks are ext4 images on loop devices, so that a full one fails as full disks do,
// in the middle of a file, with ENOSPC. It needs Linux, root, /dev/net/tun, loop
// devices and mkfs.ext4. Nothing stays behind, however it ends: see OwnMounts.
package real
