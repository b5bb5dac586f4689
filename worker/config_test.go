package worker

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-envconfig"
)

const testDatabase = "postgres://someone:secret@localhost:5432/leasehold"

func TestTheDefaultsAreThoseOfTheDesign(t *testing.T) {
	t.Parallel()
	config, err := LoadConfig(t.Context(), envconfig.MapLookuper(map[string]string{"DATABASE_URL": testDatabase}))
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	config.lookup = nil
	want := Config{
		DatabaseURL: testDatabase, WorkerID: host, Concurrency: 4 * runtime.NumCPU(),
		Lease: 30 * time.Second, Renew: 10 * time.Second, Heartbeat: 10 * time.Second, ScheduleToStart: 5 * time.Second,
		RetryLimit: 3, RetryBackoff: 30 * time.Second, RecoveryInterval: 15 * time.Second, RecoveryBatch: 100,
		AwaitingLimit: 4 * runtime.NumCPU(), TaskQueue: "leasehold",
		NodeTTL: 30 * time.Second, NodeLost: 5 * time.Minute, ProbeInterval: 10 * time.Second,
	}
	if config != want {
		t.Errorf("got  %+v\nwant %+v", config, want)
	}
}

func TestT6_AConfigurationIsRefusedWithItsArithmeticAndItsCure(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env  map[string]string
		want []string // one for each fault; none means that it is accepted
	}{
		"no database": {map[string]string{"DATABASE_URL": "-"}, []string{"DATABASE_URL is not set: set it"}},
		"set to nothing": {
			map[string]string{"DATABASE_URL": "", "EXECUTION_WORKER_ID": "", "EXECUTION_WORKER_LEASE_DURATION": ""},
			[]string{"DATABASE_URL is set to nothing", "EXECUTION_WORKER_ID is set to nothing", "EXECUTION_WORKER_LEASE_DURATION is set to nothing"},
		},
		"unreadable": {
			map[string]string{"EXECUTION_WORKER_LEASE_DURATION": "30", "EXECUTION_WORKER_CONCURRENCY": "many"},
			[]string{
				`EXECUTION_WORKER_CONCURRENCY is "many": it must be a whole number`,
				`EXECUTION_WORKER_LEASE_DURATION is "30": it must be a duration such as 30s or 5m`,
			},
		},
		"out of bounds": {
			map[string]string{"EXECUTION_WORKER_CONCURRENCY": "0", "EXECUTION_WORKER_RECOVERY_BATCH_SIZE": "1001", "RUNTIME_DEFAULT_NETWORK": "host"},
			[]string{
				"EXECUTION_WORKER_CONCURRENCY is 0: it must be between 1 and 10000",
				"EXECUTION_WORKER_RECOVERY_BATCH_SIZE is 1001",
				`RUNTIME_DEFAULT_NETWORK is "host"`,
			},
		},
		"a lease shorter than three renewals": {
			map[string]string{
				"EXECUTION_WORKER_LEASE_DURATION": "29s", "EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "3s",
			},
			[]string{"less than 3 × EXECUTION_WORKER_LEASE_RENEW_INTERVAL (3 × 10s = 30s)"},
		},
		"a take-over that does not fit": {
			map[string]string{"EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "13s"},
			[]string{"EXECUTION_WORKER_HEARTBEAT_TIMEOUT 13s + timers 1s + sticky queue 1s + EXECUTION_WORKER_SCHEDULE_TO_START 5s + " +
				"EXECUTION_WORKER_LEASE_RENEW_INTERVAL 10s = 30s, not less than EXECUTION_WORKER_LEASE_DURATION 30s: " +
				"set EXECUTION_WORKER_LEASE_DURATION to more than 30s"},
		},
		"a take-over that just fits": {map[string]string{"EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "12s"}, nil},
		"nodes that one late probe takes out of service": {
			map[string]string{"RUNTIME_PROBE_INTERVAL": "20s"}, []string{"2 × 20s = 40s"},
		},
		"jobs given up on nodes that get new ones": {map[string]string{"RUNTIME_LOST_AFTER": "20s"}, []string{"RUNTIME_LOST_AFTER is 20s"}},
		"short times": {
			map[string]string{
				"EXECUTION_WORKER_LEASE_DURATION": "7s", "EXECUTION_WORKER_LEASE_RENEW_INTERVAL": "1s",
				"EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "2s", "EXECUTION_WORKER_SCHEDULE_TO_START": "1s",
			}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"DATABASE_URL": testDatabase}
			for name, value := range tt.env {
				if env[name] = value; value == "-" {
					delete(env, name)
				}
			}
			_, err := LoadConfig(t.Context(), envconfig.MapLookuper(env))
			var faults []error
			if wrong, ok := errors.AsType[*ConfigError](err); ok {
				faults = wrong.Faults
			}
			if len(faults) != len(tt.want) {
				t.Fatalf("want %d faults, got: %v", len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(faults[i].Error(), want) {
					t.Errorf("fault %q does not say %q", faults[i], want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("the error has the password in it")
			}
		})
	}
}

func TestHelpNamesEveryVariableWithMeaningAndDefault(t *testing.T) {
	t.Parallel()
	help := ConfigHelp()
	for _, want := range []string{
		"  EXECUTION_WORKER_LEASE_DURATION\n      how long a lease lives without renewal; at least 3 renew intervals. Defaults to 30s.\n",
		"Defaults to the host name.\n", "LEASEHOLD_INSTANCE", "TEMPORAL_ADDRESS", "OTEL_TRACES_EXPORTER",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
	for _, field := range variables() {
		if field.Tag.Get("help") == "" || !strings.Contains(help, variable(field)+"\n") {
			t.Errorf("%s is not explained", field.Name)
		}
	}
}
