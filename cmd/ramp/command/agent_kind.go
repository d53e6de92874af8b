package command

// meant reports whether a configuration is of the kind of agent that a command is
// for: in another one's directory it would find nothing, or act in its name. What
// cannot be read, or is of no agent yet, is for those to say who need it.
func meant(path, kind string) error {
	c, err := readConfig(path)
	if err != nil || c.kind() == kind || c.unsaid() {
		return nil
	}
	return fail(exitUsage, c.kindHint(kind, ""), "configuration %s is a %s's, not a %s's", path, c.kind(), kind)
}

// kindHint says what to do where an agent of a kind is wanted: to give its directory if
// this one is another's, or else what its configuration lacks.
func (c *config) kindHint(want, lacks string) string {
	if is := c.kind(); is != want && !c.unsaid() {
		return "this directory is a " + is + "'s: give that of a " + want + " with --dir DIR ('ramp status' lists agents)"
	}
	return lacks
}

// unsaid reports whether no section says what kind of agent it is for.
func (c *config) unsaid() bool { return c.Bank == nil && c.Resource == nil && c.User == nil }
