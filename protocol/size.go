package protocol

// Size is how much of one thing an agent keeps in memory, and the most that it
// may: what happens at the bound is written beside the bound.
type Size struct {
	Of   string
	N    int
	Most int
}
