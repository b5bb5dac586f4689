package worker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-envconfig"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// settings is a configuration for tests: short times, no Docker.
func settings(t *testing.T, databaseURL string, ns testenv.Namespace, more ...string) Config {
	t.Helper()
	env := map[string]string{
		"DATABASE_URL": databaseURL, "TEMPORAL_ADDRESS": ns.Address, "TEMPORAL_NAMESPACE": ns.Name,
		"TEMPORAL_CONFIG_FILE": t.TempDir() + "/none", "EXECUTION_WORKER_ID": "alice", "EXECUTION_WORKER_CONCURRENCY": "2",
		"EXECUTION_WORKER_LEASE_DURATION": "7s", "EXECUTION_WORKER_LEASE_RENEW_INTERVAL": "1s",
		"EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "2s", "EXECUTION_WORKER_SCHEDULE_TO_START": "1s",
		"EXECUTION_WORKER_RECOVERY_INTERVAL": "2s",
	}
	for _, pair := range more {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	config, err := LoadConfig(t.Context(), envconfig.MapLookuper(env))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// silent is an address where connections are taken and nothing is said.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

func TestAStartThatCannotWorkSaysWhyInOneSentence(t *testing.T) {
	t.Parallel()
	ns := testenv.Temporal(t)
	good, empty := testenv.Database(t), testenv.EmptyDatabase(t)
	tests := map[string]struct {
		config Config
		want   string
	}{
		"Temporal is not there": {settings(t, good, testenv.Namespace{Address: nobody(t), Name: "default"}), "does not answer ("},
		"Temporal says nothing": {settings(t, good, testenv.Namespace{Address: silent(t), Name: "default"}), "correct TEMPORAL_ADDRESS"},
		"no such namespace": {
			settings(t, good, testenv.Namespace{Address: ns.Address, Name: "nowhere"}),
			`has no namespace "nowhere": create it with temporal operator namespace create --namespace nowhere`,
		},
		"PostgreSQL is not there": {settings(t, "postgres://me:secret@"+nobody(t)+"/x", ns), "start it, or correct DATABASE_URL"},
		"PostgreSQL says nothing": {settings(t, "postgres://me:secret@"+silent(t)+"/x", ns), "correct DATABASE_URL"},
		"no such database": {
			settings(t, good[:strings.LastIndex(good, "/")]+"/nowhere"+query(good), ns),
			`has no database "nowhere": create it, or correct DATABASE_URL`,
		},
		"no schema":      {settings(t, empty, ns), "the database has no leasehold schema: run leasehold migrate up"},
		"no URL at all":  {settings(t, "host=", ns), "correct DATABASE_URL"},
		"unreadable URL": {settings(t, "postgres://me:secret@host:port/x", ns), "DATABASE_URL cannot be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			err := Run(ctx, tt.config, slog.New(slog.DiscardHandler))
			if err == nil {
				t.Fatal("it ran")
			}
			if ctx.Err() != nil {
				t.Error("it took longer than 15 s")
			}
			if text := err.Error(); !strings.Contains(text, tt.want) || strings.Contains(text, "\n") || strings.Contains(text, "secret") {
				t.Errorf("error: %s", text)
			}
		})
	}
}

func query(url string) string {
	if _, query, ok := strings.Cut(url, "?"); ok {
		return "?" + query
	}
	return ""
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	url := testenv.Database(t)
	db, err := openDatabase(t.Context(), url, Telemetry{}.orNone())
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	if _, err := db.work.Exec(t.Context(),
		"insert into leasehold.goose_db_version (version_id, is_applied) values (999, true)"); err != nil {
		t.Fatal(err)
	}
	_, err = openDatabase(t.Context(), url, Telemetry{}.orNone())
	if _, ok := errors.AsType[*leasestore.SchemaError](err); !ok {
		t.Errorf("error: %v", err)
	}
}

func TestAnInstanceIsTheSameForADatabaseAndAnotherForItsCopy(t *testing.T) {
	t.Parallel()
	url := testenv.Database(t)
	var names []string
	for _, url := range []string{url, url, testenv.Database(t)} {
		db, err := openDatabase(t.Context(), url, Telemetry{}.orNone())
		if err != nil {
			t.Fatal(err)
		}
		name, err := db.instance(t.Context())
		db.close()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if names[0] != names[1] || names[0] == names[2] || len(names[0]) != 12 {
		t.Errorf("instances of a database, itself and a copy: %v", names)
	}
}
