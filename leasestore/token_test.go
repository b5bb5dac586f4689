package leasestore_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// leaks says whether a text has the secret in one of its forms.
func leaks(text string, token leasestore.Token) bool {
	raw := uuid.UUID(token)
	for _, form := range []string{
		raw.String(), hex.EncodeToString(raw[:]), string(raw[:]),
		strings.Trim(fmt.Sprint([16]byte(raw)), "[]"), strings.Trim(fmt.Sprintf("%#v", [16]byte(raw)), "[16]uint8{}"),
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

func TestL14_ATokenNeverPrints(t *testing.T) {
	t.Parallel()
	auth := leasestore.Authority{JobID: uuid.New(), Token: leasestore.NewToken(), Epoch: 7, Holder: alice, Turn: turn1}
	values := map[string]any{
		"token": auth.Token, "pointer": &auth.Token, "authority": auth, "authority pointer": &auth,
		"lease": leasestore.Lease{Authority: auth}, "recovered": leasestore.Recovered{Lease: leasestore.Lease{Authority: auth}},
		"renewal": leasestore.Renewal{Authority: auth}, "report": leasestore.ClaimReport{Authority: auth},
		"slice": []leasestore.Authority{auth}, "map": map[leasestore.Token]leasestore.Authority{auth.Token: auth},
	}
	for name, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U", "%e", "%t", "% x", "%08d"} {
			if text := fmt.Sprintf(verb, value); leaks(text, auth.Token) {
				t.Errorf("%s of %s prints %s", verb, name, text)
			}
		}
		for form, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			if form == "JSON" && (name == "slice" || name == "map") {
				continue // JSON of payloads carries it: not promised
			}
			var logged bytes.Buffer
			slog.New(handler(&logged)).Info("claimed", "value", value)
			if leaks(logged.String(), auth.Token) {
				t.Errorf("slog %s of %s prints %s", form, name, &logged)
			}
		}
	}
}

func TestL14_NoErrorCarriesTheToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	auth := f.placed().Authority
	_, conflict := f.Attach(t.Context(), auth, "two", "c1", ttl)
	try(f.Complete(t.Context(), auth, leasestore.Outcome{})).or(t)
	_, gone := f.Renew(t.Context(), auth, ttl)
	_, ended := f.Fail(t.Context(), auth, boom)
	f.exec(`drop table leasehold.lease cascade`)
	_, broken := f.Renew(t.Context(), auth, ttl)
	bad := leasestore.Token{}
	malformed := bad.UnmarshalText([]byte("not-" + uuid.UUID(auth.Token).String()))
	for _, err := range []error{conflict, gone, ended, broken, malformed} {
		if err == nil {
			t.Fatal("no error")
		}
		text := fmt.Sprintf("%v %+v %#v", err, err, err) + string(try(json.Marshal(err)).or(t))
		if leaks(text, auth.Token) {
			t.Errorf("the error carries the token: %s", text)
		}
	}
}

func TestATokenTravelsInAPayload(t *testing.T) {
	t.Parallel()
	auth := leasestore.Authority{JobID: uuid.New(), Token: leasestore.NewToken(), Generation: 1<<53 + 1, Epoch: 1 << 53, Holder: alice, Turn: turn1}
	var back leasestore.Authority
	check(t, json.Unmarshal(try(json.Marshal(auth)).or(t), &back))
	if back != auth {
		t.Error("an authority does not survive its payload")
	}
}
