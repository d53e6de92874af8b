package protocol

// Size is how much of one thing an agent keeps in memory, and its bound. The
// comment on each bound describes what happens there.
type Size struct {
	Of   string
	N    int
	Most int
}
