package mesh

// Peers is how many agents this one is connected to now.
func (m *Mesh) Peers() int { return len(m.host.Network().Peers()) }
