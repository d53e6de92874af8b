package plan

import (
	"fmt"
	"slices"
	"strings"
)

// taskReference is the reference to the number of a task.
const taskReference = "task"

// references are the names in the ${…} of a template.
func references(template string) (names []string, err error) {
	for rest := template; ; {
		_, after, found := strings.Cut(rest, "$")
		switch {
		case !found:
			return names, nil
		case strings.HasPrefix(after, "$"):
			rest = after[1:]
		case strings.HasPrefix(after, "{"):
			name, behind, closed := strings.Cut(after[1:], "}")
			if !closed {
				return nil, fmt.Errorf("a ${ without }: want ${NAME}, or $${ for these characters")
			}
			names, rest = append(names, name), behind
		default:
			rest = after
		}
	}
}

// quoted is the template of a text.
func quoted(text string) string { return strings.ReplaceAll(text, "$", "$$") }

type substitution struct {
	task   string
	axes   []Axis
	values []string // of the axes
}

// expand replaces the references of a template, all of which are known.
func (s substitution) expand(template string) string {
	if !strings.Contains(template, "$") {
		return template
	}
	var b strings.Builder
	for rest := template; ; {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		switch {
		case !found:
			return b.String()
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			rest = after[1:]
		case strings.HasPrefix(after, "{"):
			name, behind, _ := strings.Cut(after[1:], "}")
			b.WriteString(s.value(name))
			rest = behind
		default:
			b.WriteByte('$')
			rest = after
		}
	}
}

func (s substitution) value(name string) string {
	if i := slices.IndexFunc(s.axes, func(a Axis) bool { return a.Name == name }); i >= 0 {
		return s.values[i]
	}
	return s.task
}

func (s substitution) expandAll(templates []string) []string {
	if templates == nil {
		return nil
	}
	list := make([]string, len(templates))
	for i, t := range templates {
		list[i] = s.expand(t)
	}
	return list
}

// longest is a substitution with the longest values, for bounds.
func longest(axes []Axis) substitution {
	s := substitution{task: fmt.Sprint(MaxTasks), axes: axes}
	for _, a := range axes {
		s.values = append(s.values, slices.MaxFunc(a.Values, func(x, y string) int { return len(x) - len(y) }))
	}
	return s
}

// size is the length of an expanded template. It does not expand it: a template with many references
// may be long beyond any use.
func (s substitution) size(template string) int {
	n := len(template)
	names, _ := references(template)
	for _, name := range names {
		n += len(s.value(name)) - len("${}") - len(name)
	}
	return n
}
