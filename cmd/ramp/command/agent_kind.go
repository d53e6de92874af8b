package command

// meant reports whether a configuration is of the kind of agent that a command is
// for: another one would answer with an empty list, or not know the call. One that
// cannot be read is for those to say who need it.
func meant(path, kind string) error {
	cfg, err := readConfig(path)
	if err != nil || cfg.kind() == kind || kind == "user" && cfg.User != nil {
		return nil
	}
	hint := "name the user agent's directory with --dir; 'ramp status' lists agents"
	if kind != "user" {
		hint = "name the directory of a " + kind + " with --dir ('ramp status' lists agents), or write a section '" + kind + ":'"
	}
	return fail(exitUsage, hint, "configuration %s is not a %s's, but a %s agent's", path, kind, cfg.kind())
}
