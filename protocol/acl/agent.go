package acl

import "strings"

// agents takes one agent, or a set (or sequence) of agents.
func (p *parser) agents(depth int) ([]AID, error) {
	start := p.pos
	if err := p.expect('(', "before an agent or a set of agents"); err != nil {
		return nil, err
	}
	w, err := p.word(`"agent-identifier" or "set"`)
	switch {
	case err != nil:
		return nil, err
	case w == "set" || w == "sequence":
		return p.several(depth)
	}
	p.pos = start
	a, err := p.agent(depth)
	if err != nil {
		return nil, err
	}
	return []AID{a}, nil
}

// several takes the agents of a set up to its end.
func (p *parser) several(depth int) ([]AID, error) {
	var list []AID
	for p.peek() != ')' {
		if len(list) == MaxAgents {
			return nil, p.fail(p.pos, "more than %d agents", MaxAgents)
		}
		a, err := p.agent(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	p.pos++
	return list, nil
}

func (p *parser) agent(depth int) (a AID, err error) {
	p.space()
	start := p.pos
	if depth > MaxDepth {
		return a, p.fail(start, "nested deeper than %d", MaxDepth)
	}
	if err := p.expect('(', "before an agent-identifier"); err != nil {
		return a, err
	}
	at := p.pos
	if w, err := p.word(`"agent-identifier"`); err != nil || w != "agent-identifier" {
		p.pos = at
		return a, p.fail(at, `found %s, want "agent-identifier"`, p.found())
	}
	for seen := map[string]bool{}; p.peek() != ')'; {
		if err := p.agentParameter(&a, seen, depth); err != nil {
			return a, err
		}
	}
	p.pos++
	if a.Name == "" {
		return a, p.fail(start, "an agent-identifier without :name")
	}
	return a, nil
}

func (p *parser) agentParameter(a *AID, seen map[string]bool, depth int) error {
	p.space()
	at := p.pos
	key, err := p.once(seen)
	if err != nil {
		return err
	}
	switch strings.ToLower(key) {
	case "name":
		a.Name, err = p.value()
	case "addresses":
		a.Addresses, err = p.addresses()
	case "resolvers":
		a.Resolvers, err = p.agents(depth + 1)
	default:
		a.User, err = p.user(a.User, key, at, MaxUser)
	}
	return err
}

// addresses takes a sequence (or set) of addresses.
func (p *parser) addresses() ([]string, error) {
	if err := p.expect('(', "before a sequence of addresses"); err != nil {
		return nil, err
	}
	at := p.pos
	if w, err := p.word(`"sequence"`); err != nil || w != "sequence" && w != "set" {
		p.pos = at
		return nil, p.fail(at, `found %s, want "sequence"`, p.found())
	}
	var list []string
	for p.peek() != ')' {
		at := p.pos
		if len(list) == MaxAddresses {
			return nil, p.fail(at, "more than %d addresses of one agent", MaxAddresses)
		}
		s, err := p.value()
		if err != nil {
			return nil, err
		}
		if s == "" {
			return nil, p.fail(at, "an empty address")
		}
		list = append(list, s)
	}
	p.pos++
	return list, nil
}
