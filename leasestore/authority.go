package leasestore

import (
	"fmt"
	"log/slog"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Authority is what a bearer shows to act for a job: proof of one ownership,
// by one process, in one turn. It fits a Temporal payload. Whoever has it can
// act, so keep it out of logs; its own log form leaves the token out.
type Authority struct {
	JobID      uuid.UUID `db:"job_id"     json:"job_id"`
	Token      Token     `db:"token"      json:"token"`
	Generation int64     `db:"generation" json:"generation"`
	// Epoch is the fencing token: it rises with every change of ownership.
	Epoch int64 `db:"epoch" json:"epoch"`
	Holder
	// Turn orders the attempts that act for one epoch: the Temporal server's
	// start time of the activity attempt, in microseconds. Later wins.
	Turn int64 `db:"turn" json:"turn"`
}

// Holder is a worker process.
type Holder struct {
	Worker  string    `db:"worker"  json:"worker"`  // stable name, by default the host name
	Process uuid.UUID `db:"process" json:"process"` // random, made at process start
}

// By returns the same ownership borne by another process or in a later turn.
// It is only an offer until [Store.Prove] accepts it.
func (a Authority) By(h Holder, turn int64) Authority {
	a.Holder, a.Turn = h, turn
	return a
}

// shown is the authority without its token, for errors.
func (a Authority) shown() Authority {
	a.Token = Token{}
	return a
}

// LogValue leaves the token out.
func (a Authority) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("job", a.JobID.String()),
		slog.Int64("epoch", a.Epoch),
		slog.Int64("turn", a.Turn),
		slog.String("worker", a.Worker),
	)
}

func (a Authority) args(more pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args := pgx.StrictNamedArgs{
		"job_id": a.JobID, "token": a.Token, "generation": a.Generation, "epoch": a.Epoch,
		"worker": a.Worker, "process": a.Process, "turn": a.Turn,
	}
	maps.Copy(args, more)
	return args
}

// Token is the secret of one ownership: random, never reused. It prints as
// "redacted"; only its text form, in a JSON payload, carries it.
type Token uuid.UUID

// NewToken returns a random token.
func NewToken() Token { return Token(uuid.New()) }

// Format prints "redacted" for every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("redacted")) }

// LogValue returns "redacted".
func (Token) LogValue() slog.Value { return slog.StringValue("redacted") }

// MarshalText returns the secret itself, for payloads.
func (t Token) MarshalText() ([]byte, error) { return uuid.UUID(t).MarshalText() }

// UnmarshalText reads what MarshalText wrote.
func (t *Token) UnmarshalText(text []byte) error {
	if err := (*uuid.UUID)(t).UnmarshalText(text); err != nil {
		return fmt.Errorf("token is not a UUID") // the text may be the secret: leave it out
	}
	return nil
}

// UUIDValue lets pgx send a token; without it pgx would send what Format prints.
func (t Token) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: t, Valid: t != Token{}}, nil
}

// ScanUUID lets pgx read a token; SQL null is the zero token.
func (t *Token) ScanUUID(v pgtype.UUID) error {
	*t = v.Bytes
	return nil
}
