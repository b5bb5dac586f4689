package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxFile bounds what is read from a file or from standard input.
const maxFile = 1 << 20

// decodeFile reads JSON or YAML from a file, or from standard input for "-",
// into value. Fields that value does not have, and fields given twice, are
// refused by name.
func (c *cli) decodeFile(path string, value any) error {
	name, from := path, c.in
	if path == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return &refusedError{Err: err}
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err == nil {
		err = decodeStrict(text, value)
	}
	if err != nil {
		return &refusedError{Err: fmt.Errorf("%s: %w", name, err)}
	}
	return nil
}

// decodeStrict reads JSON, or YAML that says the same, into value.
func decodeStrict(text []byte, value any) error {
	if strings.TrimSpace(string(text)) == "" {
		return fmt.Errorf("it is empty")
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return fmt.Errorf("it is neither JSON nor YAML: %s", oneLine(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	var raw any
	if err := json.Unmarshal(asJSON, &raw); err != nil {
		return err
	}
	if _, ok := raw.(map[string]any); !ok {
		return fmt.Errorf("it must be an object with fields, such as {%q: …}", firstField(reflect.TypeOf(value)))
	}
	if err := unknownField(raw, reflect.TypeOf(value), ""); err != nil {
		return err
	}
	return readable(json.Unmarshal(asJSON, value))
}

// readable says in the user's words which field has a value of a wrong type.
func readable(err error) error {
	if wrong, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // json returns it as it is
		return fmt.Errorf("%s: must be a %s, not a %s", wrong.Field, plainType(wrong.Type), wrong.Value)
	}
	return err
}

func plainType(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the others have names of their own
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "number"
	case reflect.Pointer:
		return plainType(t.Elem())
	}
	return t.Kind().String()
}

// unknownField compares what was given with the fields that a type has, all
// the way down, and reports the first that it has not.
func unknownField(given any, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	object, ok := given.(map[string]any)
	if !ok || t.Kind() != reflect.Struct {
		return nil
	}
	known := fields(t)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, ok := known[name]
		if !ok {
			return fmt.Errorf("%s: there is no such field%s", path+name, didYouMean(name, slices.Sorted(maps.Keys(known))))
		}
		if err := unknownField(object[name], field, path+name+"."); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the JSON fields of a struct, embedded ones included.
func fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && !field.Anonymous {
			name = field.Name
		}
		if name != "" && name != "-" && field.IsExported() {
			known[name] = field.Type
		}
	}
	return known
}

func firstField(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Field(0).Tag.Get("json"), ",")
	return name
}
