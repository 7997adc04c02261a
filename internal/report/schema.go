package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// PredictSchema is the JSON Schema of WritePredictJSON's output, made from the
// types, so that it cannot differ from them.
func PredictSchema() (string, error) { return schemaText("hugelab predict --json", PredictJSON{}) }

func schemaText(title string, v any) (string, error) {
	s, err := schemaOf(reflect.TypeOf(v))
	if err != nil {
		return "", err
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", fmt.Errorf("schema: %w", err)
	}
	return string(text) + "\n", nil
}

// schemaOf describes the kinds of types that reports are made of.
func schemaOf(t reflect.Type) (map[string]any, error) {
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}, nil
	case reflect.Slice:
		items, err := schemaOf(t.Elem())
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := schemaOf(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		return schemaStruct(t)
	}
	return nil, fmt.Errorf("schema: no rule for %s", t)
}

func schemaStruct(t reflect.Type) (map[string]any, error) {
	props := map[string]any{}
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		s, err := schemaOf(f.Type)
		if err != nil {
			return nil, err
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
	}, nil
}
