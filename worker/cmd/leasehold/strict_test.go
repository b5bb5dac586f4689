package main

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/activities"
)

func TestDecodeStrict(t *testing.T) {
	tests := map[string]struct {
		text string
		want string // the error; empty if there is none
	}{
		"JSON":                   {`{"kind": "CONTAINER", "container": {"image": "a", "timeout": "5m"}}`, ""},
		"YAML":                   {"kind: CONTAINER\ncontainer:\n  image: a\n  timeout: 5m\n", ""},
		"nothing":                {" \n", "it is empty"},
		"an unknown field":       {`{"knd": "CONTAINER"}`, `knd: there is no such field; did you mean kind?`},
		"one deep down":          {`{"retry": {"bakoff": "1s"}}`, `retry.bakoff: there is no such field; did you mean backoff?`},
		"one like no other":      {`{"zzzzzzzz": 1}`, `zzzzzzzz: there is no such field`},
		"a field in capitals":    {`{"Kind": "CONTAINER"}`, `Kind: there is no such field; did you mean kind?`},
		"a field twice":          {"kind: A\nkind: B\n", "it is neither JSON nor YAML: "},
		"a list":                 {"[1, 2]", `it must be an object with fields, such as {"definition": …}`},
		"text":                   {"hello", `it must be an object with fields, such as {"definition": …}`},
		"a number for text":      {`{"definition": 7}`, `definition: must be a string, not a number`},
		"text for a number":      {`{"generation": "x"}`, `generation: must be a number, not a string`},
		"a string for a command": {`{"container": {"command": "echo hi"}}`, `container.command: give a list`},
		"names of the user's":    {`{"container": {"image": "a", "env": {"anything": "goes"}}}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var input activities.JobInput
			err := decodeStrict([]byte(tt.text), &input)
			switch {
			case err == nil && tt.want == "":
				if input.Container.Image != "a" {
					t.Errorf("it was read as %+v", input)
				}
			case err == nil || tt.want == "" || !strings.HasPrefix(err.Error(), tt.want):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"image", "env", "endpoint", "max_running"}
	for typed, want := range map[string]string{
		"imge": "; did you mean image?", "enviroment": "", "max-running": "; did you mean max_running?", "x": "", "ENV": "; did you mean env?",
	} {
		if got := didYouMean(typed, known); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 350 * time.Millisecond: "350ms", 4200 * time.Millisecond: "4.2s", 59 * time.Second: "59s",
		190 * time.Second: "3m10s", 125 * time.Minute: "2h5m", 76 * time.Hour: "3d4h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %s, want %s", d, got, want)
		}
	}
}
