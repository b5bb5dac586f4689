package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sethvargo/go-envconfig"
)

func TestASecondDevOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := openInstallation(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := call(t, nil, "", "dev", "--dir", dir)
	want := "leasehold: another leasehold dev runs in " + dir + ": use it, stop it with Ctrl-C, or give this one another --dir\n"
	if got.code != exitRefused || got.errOut != want {
		t.Errorf("exit code %d, it said %q", got.code, got.errOut)
	}
	first.close()
	second, err := openInstallation(dir)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	second.close()
}

func TestCommandsFindARunningDevUnlessToldWhere(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	home, err := openInstallation(filepath.Join(data, "leasehold", "dev"))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"DATABASE_URL": "postgres://dev's", "TEMPORAL_ADDRESS": "dev:1"}
	if err := home.writeEnv(own); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		env  map[string]string
		want [2]string // DATABASE_URL and TEMPORAL_ADDRESS
		told bool
	}{
		"nothing is set":      {nil, [2]string{"postgres://dev's", "dev:1"}, true},
		"the database is set": {map[string]string{"DATABASE_URL": "mine"}, [2]string{"mine", ""}, false},
		"the server is set":   {map[string]string{"TEMPORAL_ADDRESS": "mine"}, [2]string{"", "mine"}, false},
		"others are set":      {map[string]string{"TEMPORAL_NAMESPACE": "n"}, [2]string{"postgres://dev's", "dev:1"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			c := &cli{errOut: &said, env: envconfig.MultiLookuper(envconfig.MapLookuper(tt.env),
				envconfig.MapLookuper(map[string]string{"XDG_DATA_HOME": data}))}
			for range 2 {
				database, _ := c.environment().Lookup("DATABASE_URL")
				server, _ := c.environment().Lookup("TEMPORAL_ADDRESS")
				if got := [2]string{database, server}; got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
			if told := strings.Count(said.String(), "\n"); told != map[bool]int{true: 1}[tt.told] {
				t.Errorf("it said %q", said.String())
			}
			if namespace, _ := c.environment().Lookup("TEMPORAL_NAMESPACE"); tt.told && namespace != "" {
				t.Errorf("namespace %q of another server is used", namespace)
			}
		})
	}
	home.close()
	if _, running := runningDev(home.dir); running {
		t.Error("a dev that has ended is still used")
	}
	if _, err := os.Stat(home.path(envFile)); err == nil {
		t.Error("its env file is left")
	}
}

func TestPortsOfTheLastStartAreTakenAgain(t *testing.T) {
	t.Parallel()
	home, err := openInstallation(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.close()
	if first, err := home.choosePorts(devPorts{}); err != nil || first != (devPorts{}) {
		t.Fatalf("on a first start: %+v, %v", first, err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	free := port - 1
	for !portFree(free) {
		free--
	}
	if err := home.savePorts(devPorts{UI: port, Temporal: free}); err != nil {
		t.Fatal(err)
	}
	if got, err := home.choosePorts(devPorts{}); err != nil || got != (devPorts{Temporal: free}) {
		t.Errorf("the taken one is given up and the free one kept: got %+v, %v", got, err)
	}
	if _, err := home.choosePorts(devPorts{UI: port}); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("a taken port that was asked for: %v", err)
	}
	if _, err := home.choosePorts(devPorts{UI: 70000}); err == nil || !strings.Contains(err.Error(), "between 1 and 65535") {
		t.Errorf("a port that is none: %v", err)
	}
	taken.Close()
}
