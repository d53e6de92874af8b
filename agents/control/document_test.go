package control_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/user/sweep/plan"
)

var update = flag.Bool("update", false, "write docs/CONTROL.md and docs/openapi.json")

const documents = "../../docs/"

// The tables of docs/CONTROL.md, and docs/openapi.json, are made from the table of calls.
func TestTheDocumentsHaveTheTableOfCalls(t *testing.T) {
	file := documents + "CONTROL.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	same(t, file, regexp.MustCompile(`(?s)<!-- calls -->.*<!-- end of calls -->`).ReplaceAllLiteral(text, []byte("<!-- calls -->\n"+callTables()+"<!-- end of calls -->")))
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	if err := e.Encode(openAPI()); err != nil {
		t.Fatal(err)
	}
	same(t, documents+"openapi.json", b.Bytes())
}

// same holds that a file is as it was made, or writes it.
func same(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not current: run go test ./agents/control -run Documents -update (%v)", file, err)
	}
}

func callTables() string {
	var b strings.Builder
	for _, part := range []struct {
		title string
		kind  control.Kind
	}{{"All agents", control.Every}, {"User agents", control.User}, {"Resource agents", control.Resource}, {"Banks", control.Bank}} {
		fmt.Fprintf(&b, "\n## %s\n\n| call | question | answer |\n|---|---|---|\n", part.title)
		for _, c := range control.Table() {
			if c.Kind&part.kind == 0 || (c.Kind == control.Every) != (part.kind == control.Every) {
				continue
			}
			method := "POST"
			if c.Reads {
				method = "GET"
			}
			fmt.Fprintf(&b, "| `%s %s` | %s | %s: %s |\n", method, c.Path, fieldsOf(c.Question), c.About, shapeOf(c))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func fieldsOf(t reflect.Type) string {
	var names []string
	for _, f := range jsonFields(t) {
		names = append(names, f.name)
	}
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func shapeOf(c *control.Call) string {
	t, list := c.Answer, ""
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), " list"
	}
	if c.Streams {
		list = " stream"
	}
	if t == reflect.TypeFor[control.None]() {
		return "nothing"
	}
	return "`" + t.Name() + "`" + list
}

type jsonField struct {
	name     string
	optional bool
	of       reflect.Type
}

// jsonFields are the fields of a struct as encoding/json has them.
func jsonFields(t reflect.Type) (list []jsonField) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		list = append(list, jsonField{name, strings.Contains(options, "omit") || f.Type.Kind() == reflect.Pointer, f.Type})
	}
	return list
}

// openAPI is the table of calls as OpenAPI 3.1 has it.
func openAPI() map[string]any {
	s := schemas{}
	paths := map[string]map[string]any{}
	for _, c := range control.Table() {
		kind := "application/json"
		if c.Streams {
			kind = "application/x-ndjson"
		}
		answersAs := func(kind string) map[string]any {
			return map[string]any{
				"200": map[string]any{"description": c.About, "content": map[string]any{kind: map[string]any{"schema": s.of(c.Answer)}}},
				"422": map[string]any{"description": "refused", "content": map[string]any{"application/json": map[string]any{"schema": s.of(reflect.TypeFor[control.CallError]())}}},
			}
		}
		p := paths[c.Path]
		if p == nil {
			p = map[string]any{}
			paths[c.Path] = p
		} else { // another kind of agent answers it otherwise
			before := p["post"].(map[string]any)["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)
			first := before[kind].(map[string]any)["schema"]
			before[kind] = map[string]any{"schema": map[string]any{"anyOf": []any{first, s.of(c.Answer)}}}
			for _, method := range p {
				method := method.(map[string]any)
				method["tags"] = append(method["tags"].([]string), strings.Split(c.Kind.String(), ", ")...)
			}
			continue
		}
		p["post"] = map[string]any{
			"summary": c.About, "tags": strings.Split(c.Kind.String(), ", "), "responses": answersAs(kind),
			"requestBody": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": s.of(c.Question)}}},
		}
		if !c.Reads {
			continue
		}
		parameters := []any{}
		for _, f := range jsonFields(c.Question) {
			parameters = append(parameters, map[string]any{"name": f.name, "in": "query", "schema": s.of(f.of)})
		}
		if c.Path == control.Events.Path {
			kind = "text/event-stream"
		}
		p["get"] = map[string]any{"summary": c.About, "tags": strings.Split(c.Kind.String(), ", "), "parameters": parameters, "responses": answersAs(kind)}
	}
	return map[string]any{
		"openapi":    "3.1.0",
		"info":       map[string]any{"title": "Control socket of a RAMP agent", "version": fmt.Sprint(control.Version), "license": map[string]any{"name": "see LICENSE"}},
		"servers":    []any{map[string]any{"url": "http://agent", "description": "over the unix socket control.sock"}},
		"paths":      paths,
		"components": map[string]any{"schemas": s},
	}
}

// schemas are the shapes of answers and questions, by name.
type schemas map[string]any

// of is the schema of a type: a struct is named and referred to.
func (s schemas) of(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return map[string]any{"anyOf": []any{s.of(t.Elem()), map[string]any{"type": "null"}}}
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t == reflect.TypeFor[[]byte]():
		return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return s.marshalled(t)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.object(t)
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

// marshalled is the schema of a type that writes itself, by what its zero value writes.
func (s schemas) marshalled(t reflect.Type) map[string]any {
	b, err := json.Marshal(reflect.Zero(t).Interface())
	switch {
	case err != nil || len(b) == 0:
		return map[string]any{}
	case b[0] == '"':
		return map[string]any{"type": "string"}
	case b[0] == '{' && t.Kind() == reflect.Struct:
		return s.object(t)
	case b[0] == '{':
		return map[string]any{"type": "object"}
	case b[0] == '[':
		return map[string]any{"type": "array"}
	}
	return map[string]any{"type": "number"}
}

func (s schemas) object(t reflect.Type) map[string]any {
	if t.NumField() == 0 {
		return map[string]any{"type": "object"}
	}
	name := strings.ReplaceAll(t.String(), ".", "_")
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if _, ok := s[name]; ok {
		return ref
	}
	s[name] = nil // it may refer to itself
	properties, required := map[string]any{}, []string{}
	for _, f := range jsonFields(t) {
		properties[f.name] = s.of(f.of)
		if t == reflect.TypeFor[control.SweepCall]() && f.name == "plan" {
			properties[f.name] = s.of(reflect.TypeFor[plan.Plan]())
		}
		if !f.optional {
			required = append(required, f.name)
		}
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) { // it may write more, or less
		var written map[string]any
		if b, err := json.Marshal(reflect.Zero(t).Interface()); err != nil || json.Unmarshal(b, &written) != nil {
			return map[string]any{"type": "object"}
		}
		for key, v := range written {
			if properties[key] == nil {
				properties[key] = map[string]any{"type": map[bool]string{true: "number", false: "string"}[reflect.ValueOf(v).Kind() == reflect.Float64]}
			}
		}
		required = []string{}
	}
	s[name] = map[string]any{"type": "object", "properties": properties, "required": required}
	return ref
}
