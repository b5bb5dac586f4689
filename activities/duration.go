package activities

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration whose JSON form is Go's duration string.
type Duration time.Duration

// String is Go's duration string, without units that are zero: "5m", not
// "5m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(text) > len(zero) && text[len(text)-len(zero):] == zero {
			text = text[:len(text)-len(zero)+1]
		}
	}
	return text
}

// MarshalJSON writes a Go duration string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a Go duration string. A number is refused: it does not
// say what it counts.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`%s is no duration: give a string with a unit, such as "90s" or "1h30m"`, brief(string(raw)))
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is no duration: give a number with a unit, such as "90s" or "1h30m"`, brief(text))
	}
	*d = Duration(parsed)
	return nil
}

// brief keeps a value that somebody sent to us from filling a message.
func brief(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
