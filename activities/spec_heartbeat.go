package activities

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Validate returns a [*SpecError] with all that is wrong with the spec, or nil.
func (s HeartbeatSpec) Validate() error {
	var f faults
	checkURL(&f, "heartbeat.endpoint", s.Endpoint)
	f.add(s.ExpectedStatusCode != 0 && (s.ExpectedStatusCode < 100 || s.ExpectedStatusCode > 599),
		"heartbeat.expected_status_code", "must be between 100 and 599")
	checkDuration(&f, "heartbeat.timeout", s.Timeout, Duration(5*time.Minute))
	for _, name := range sortedKeys(s.Headers) {
		at := "heartbeat.headers." + brief(name)
		f.add(!headerName.MatchString(name), at, "the name is not that of an HTTP header")
		f.add(slices.Contains(ownHeaders, strings.ToLower(name)), at, "is set by the request itself")
		f.add(strings.ContainsFunc(s.Headers[name], notInHeader), at, "the value must be one line of text")
	}
	return f.err()
}

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$")
	ownHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "trailer", "upgrade"}
)

func notInHeader(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func checkURL(f *faults, at, given string) {
	parsed, err := url.Parse(given)
	switch {
	case given == "":
		f.add(true, at, "must be given, such as https://example.com/health")
	case err != nil, parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Hostname() == "":
		f.add(true, at, "must be an http or https URL with a host")
	case parsed.User != nil:
		f.add(true, at, "must not contain a user or password: use a header")
	}
}
