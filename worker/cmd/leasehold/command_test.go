package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sethvargo/go-envconfig"

	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// answer is what one call of the command came to.
type answer struct {
	code        int
	out, errOut string
}

// call runs the command with an environment of its own: a home without a
// running dev, and what the test adds.
func call(t *testing.T, env map[string]string, input string, args ...string) answer {
	t.Helper()
	lookup := envconfig.MultiLookuper(envconfig.MapLookuper(env), envconfig.MapLookuper(map[string]string{
		"HOME": t.TempDir(), "XDG_DATA_HOME": t.TempDir(),
	}))
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, lookup, strings.NewReader(input), &out, &errOut)
	return answer{code: code, out: out.String(), errOut: errOut.String()}
}

// nobody is a database address where nothing listens.
var nobody = map[string]string{"DATABASE_URL": "postgres://u:secret@127.0.0.1:1/db"}

func TestMistakesAreOneSentenceAndExitCode2(t *testing.T) {
	const noURL = "DATABASE_URL is not set: set it to the database, such as postgres://user@host:5432/leasehold, or start leasehold dev"
	tests := map[string]struct {
		args  string
		input string
		env   map[string]string
		want  string
	}{
		"an unknown command":       {args: "jbos", want: `leasehold has no subcommand "jbos"; did you mean jobs? (see leasehold --help)`},
		"an unknown subcommand":    {args: "jobs lst", want: `leasehold jobs has no subcommand "lst"; did you mean list? (see leasehold jobs --help)`},
		"an unknown flag":          {args: "run --imgae x", want: "unknown flag: --imgae; did you mean --image? (see leasehold run --help)"},
		"an unknown output":        {args: "version -o xml", want: `--output is "xml": it must be table or json (see leasehold version --help)`},
		"a missing argument":       {args: "jobs show", want: "leasehold jobs show needs a job, by its ID or its workflow ID (see leasehold jobs show --help)"},
		"an argument too many":     {args: "nodes drain a b", want: `leasehold nodes drain takes one argument, not "b" too (see leasehold nodes drain --help)`},
		"a command without --":     {args: "run --image busybox:1 echo", want: `"echo" is not a flag: put -- before the command of the job (see leasehold run --help)`},
		"nothing to run":           {args: "run", want: "there is nothing to run: give --image, --heartbeat, --definition or -f (see leasehold run --help)"},
		"two kinds of job":         {args: "run --image a --heartbeat b", want: "--image and --heartbeat are two kinds of job: give one of them"},
		"a command without image":  {args: "run --definition d -- echo", want: "a command needs the image to run it in: give --image"},
		"env without value":        {args: "run --image busybox:1 -e NOWHERE", want: "--env NOWHERE has no value, and NOWHERE is not set here: write NOWHERE=VALUE"},
		"a file and flags":         {args: "run -f x --image y", want: "-f describes the whole job: leave out --image, or put it into the file"},
		"a file that is not there": {args: "run -f nowhere.yaml", want: "open nowhere.yaml: no such file or directory"},
		"an unknown status":        {args: "jobs list --status runing", want: `--status is "runing": it must be one of pending, queued, running, completed, failed, canceled; did you mean running?`},
		"a bad limit":              {args: "jobs list --limit 0", want: "--limit is 0: it must be between 1 and 1000"},
		"a bad label":              {args: "nodes add n --label disk", want: `--label is "disk": write NAME=VALUE`},
		"no endpoint":              {args: "nodes add n", want: "the address of the daemon is missing: give --endpoint, such as unix:///var/run/docker.sock"},
		"no file":                  {args: "definitions apply", want: "give the file with the definition: -f FILE, or -f - for standard input"},
		"an unknown field": {
			args: "run -f -", input: `{"kind": "CONTAINER", "container": {"imge": "busybox:1"}}`,
			want: "standard input: container.imge: there is no such field; did you mean image?",
		},
		"a definition without name": {
			args: "definitions apply -f -", input: `{"kind": "HEARTBEAT", "heartbeat": {"endpoint": "http://localhost"}}`,
			want: "-: definition: is missing, it is the name to store it under",
		},
		"a definition with a job's field": {
			args:  "definitions apply -f -",
			input: `{"definition": "d", "idempotency_key": "k", "kind": "HEARTBEAT", "heartbeat": {"endpoint": "http://localhost"}}`,
			want:  "-: idempotency_key: belongs to a job, not to its definition",
		},
		"no database":               {args: "jobs list", want: noURL},
		"no database for a worker":  {args: "worker", want: noURL},
		"no database for a job":     {args: "run --image busybox:1", want: noURL},
		"a bad log format":          {args: "worker --log-format xml", want: `--log-format is "xml": it must be text or json`},
		"a database URL with typos": {args: "migrate", env: map[string]string{"DATABASE_URL": "postgres://u:secret@h:port/d"}, want: `DATABASE_URL cannot be read: `},
		"nobody listens": {
			args: "jobs list", env: nobody,
			want: "PostgreSQL at 127.0.0.1:1 does not answer (connection refused): start it, or correct DATABASE_URL",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, tt.env, tt.input, strings.Fields(tt.args)...)
			if got.code != exitRefused || got.out != "" {
				t.Errorf("exit code %d and output %q, want %d and none", got.code, got.out, exitRefused)
			}
			if !strings.HasPrefix(got.errOut, "leasehold: "+tt.want) {
				t.Errorf("it said:\n%s\nwant:\nleasehold: %s", got.errOut, tt.want)
			}
			if strings.Count(got.errOut, "\n") != 1 || strings.Contains(got.errOut, "secret") {
				t.Errorf("it is not one line without secrets: %q", got.errOut)
			}
		})
	}
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	for _, args := range []string{"", "--help", "run --help", "jobs", "worker --help", "nodes add -h", "help run"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := call(t, nil, "", strings.Fields(args)...)
			if got.code != 0 || got.errOut != "" || !strings.Contains(got.out, "Usage:") {
				t.Errorf("exit code %d, errors %q, output %q", got.code, got.errOut, got.out)
			}
		})
	}
}

func TestEveryLeafCommandHasAnExample(t *testing.T) {
	t.Parallel()
	c := &cli{env: envconfig.MapLookuper(nil)}
	for _, cmd := range c.root().Commands() {
		for _, leaf := range append(cmd.Commands(), cmd) {
			if !leaf.HasSubCommands() && leaf.Example == "" && leaf.Name() != "help" {
				t.Errorf("%s has no example", leaf.CommandPath())
			}
		}
	}
}
