package activities

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// UnmarshalJSON reads a spec. It refuses unknown fields, and a command that is
// a string: nobody knows how its author would have split it.
func (s *ContainerSpec) UnmarshalJSON(raw []byte) error {
	type plain ContainerSpec // without this method
	in := struct {
		*plain
		Entrypoint arguments `json:"entrypoint"`
		Command    arguments `json:"command"`
		Timeout    duration  `json:"timeout"`
		StopGrace  duration  `json:"stop_grace"`
	}{
		plain:      (*plain)(s),
		Entrypoint: arguments{name: "entrypoint"}, Command: arguments{name: "command"},
		Timeout: duration{name: "timeout"}, StopGrace: duration{name: "stop_grace"},
	}
	if err := decodeFields("container", raw, &in); err != nil {
		return err
	}
	s.Entrypoint, s.Command = in.Entrypoint.list, in.Command.list
	s.Timeout, s.StopGrace = in.Timeout.value, in.StopGrace.value
	return nil
}

// UnmarshalJSON reads a spec. It refuses unknown fields.
func (s *HeartbeatSpec) UnmarshalJSON(raw []byte) error {
	type plain HeartbeatSpec
	in := struct {
		*plain
		Timeout duration `json:"timeout"`
	}{plain: (*plain)(s), Timeout: duration{name: "timeout"}}
	if err := decodeFields("heartbeat", raw, &in); err != nil {
		return err
	}
	s.Timeout = in.Timeout.value
	return nil
}

// decodeFields decodes the object at a path; its error names the field.
func decodeFields(path string, raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		return nil
	}
	if fault, ok := errors.AsType[*fieldError](err); ok {
		return &SpecError{Faults: []Fault{{path + "." + fault.field, fault.message}}}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := strings.TrimPrefix(wrong.Field, "plain.")
		return &SpecError{Faults: []Fault{{strings.TrimSuffix(path+"."+field, "."), "a " + wrong.Value + " does not belong there"}}}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &SpecError{Faults: []Fault{{path + "." + strings.Trim(name, `"`), "there is no such field"}}}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// A fieldError is a fault of a field that knows its own name.
type fieldError struct{ field, message string }

func (e *fieldError) Error() string { return e.field + ": " + e.message }

type arguments struct {
	name string
	list *[]string
}

func (a *arguments) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &a.list); err != nil {
		return &fieldError{a.name, `give a list, one item per argument, such as ["echo", "hi"]`}
	}
	return nil
}

type duration struct {
	name  string
	value Duration
}

func (d *duration) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, &d.value); err != nil {
		return &fieldError{d.name, err.Error()}
	}
	return nil
}
