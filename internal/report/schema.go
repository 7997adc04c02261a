package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// PredictSchema is the JSON Schema of WritePredictJSON's output, made from the
// types, so that it cannot differ from them.
func PredictSchema() string { return schemaText("hugelab predict --json", PredictJSON{}) }

// Schema is the JSON Schema of a struct that another package writes.
func Schema(title string, v any) string { return schemaText(title, v) }

func schemaText(title string, v any) string {
	s := schemaOf(reflect.TypeOf(v))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("report: schema: " + err.Error()) // maps of strings always encode
	}
	return string(text) + "\n"
}

// schemaOf describes the kinds of types that reports are made of. Another kind
// is a mistake in this package, which its tests find.
func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		return schemaStruct(t)
	}
	panic(fmt.Sprintf("report: schema: no rule for %s", t))
}

func schemaStruct(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := schemaOf(f.Type)
		if f.Type.Kind() == reflect.Pointer && opts != "omitempty" {
			s["type"] = []any{s["type"], "null"}
		}
		if d := f.Tag.Get("doc"); d != "" {
			s["description"] = d
		}
		props[name] = s
		if opts != "omitempty" {
			required = append(required, name)
		}
	}
	return map[string]any{
		"type": "object", "properties": props, "required": required, "additionalProperties": false,
	}
}
