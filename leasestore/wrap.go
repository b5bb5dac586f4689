package leasestore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// wrap adds the verb and its object, once, to whatever is not already one of
// ours, and marks what may have been committed without our knowing.
func wrap(err error, verb, id string) error {
	switch {
	case err == nil, ours(err):
		return err
	case isolated(err):
		return &InvalidError{Field: "transaction isolation", Problem: "must be READ COMMITTED"}
	case coded(err, "25006"):
		err = &ReadOnlyError{Err: err}
	case badValue(err) != "":
		return &InvalidError{Field: "value", Problem: badValue(err)}
	case unknown(err):
		err = &UnknownError{Err: err}
	}
	return fmt.Errorf("%s %q: %w", verb, id, err)
}

// wrapRead is wrap for reads: nothing was changed, so nothing is unknown.
func wrapRead(err error, verb, id string) error {
	if err == nil || ours(err) {
		return err
	}
	if problem := badValue(err); problem != "" {
		return &InvalidError{Field: "value", Problem: problem}
	}
	return fmt.Errorf("%s %q: %w", verb, id, err)
}

// isolated says that the caller's transaction would not see what was decided
// since it began: see require_read_committed in the schema.
func isolated(err error) bool {
	return coded(err, "LH002")
}

// badValue is what PostgreSQL says of a value that no column can take: class
// 22, such as a NUL in a text.
func badValue(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pgErr.Code, "22") {
		return "cannot be stored: " + pgErr.Message
	}
	return ""
}

func coded(err error, code string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == code
}

// raced says that another process made the same schema at the same moment.
func raced(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "23505" || pgErr.Code == "42P06")
}

// parseProblem is why a database URL cannot be read, without the URL: it may
// hold a password.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		if inner := parse.Unwrap(); inner != nil {
			return inner.Error()
		}
	}
	return "it must look like postgres://user@host:5432/database"
}

func ours(err error) bool {
	switch err.(type) { //nolint:errorlint // only an error of ours itself, not one wrapped by another
	case *NotFoundError, *InvalidError, *LostError, *EndedError, *ConflictError, *NotEligibleError, *NotDueError, *SchemaError:
		return true
	}
	return false
}

// unknown says whether a change may have been committed: neither did the
// server refuse it nor was it never sent. An ERROR is a refusal; what ends the
// session (FATAL, PANIC) may come after the commit.
func unknown(err error) bool {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.SeverityUnlocalized != "ERROR" || strings.HasPrefix(pgErr.Code, "08") || pgErr.Code == "40003"
	}
	return !pgconn.SafeToRetry(err)
}
