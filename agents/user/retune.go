package user

// Retune takes the banks, times and limits of c; the agent stays who it is.
// Purchases that go on keep what they began with.
func (r *Role) Retune(c Config) {
	c = c.filled()
	c.Credential, c.Trust = r.cfg.Credential, r.cfg.Trust
	r.cfg = c
}
