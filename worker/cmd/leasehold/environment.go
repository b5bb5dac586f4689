package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/sethvargo/go-envconfig"
)

// environment returns where the command reads its configuration. If neither
// the database nor the Temporal server is named there, those of a running
// leasehold dev are used: both or none, because jobs live in both.
func (c *cli) environment() envconfig.Lookuper {
	if isSet(c.env, "DATABASE_URL") || isSet(c.env, "TEMPORAL_ADDRESS") {
		return c.env
	}
	dir := defaultDir(c.env)
	found, running := runningDev(dir)
	if !running {
		return c.env
	}
	if !c.toldDev {
		c.toldDev = true
		fmt.Fprintf(c.errOut, "Using the running leasehold dev in %s.\n", dir)
	}
	return devEnvironment(found, c.env)
}

// devEnvironment is the configuration of a leasehold dev: its own addresses,
// and from the outside only what does not say where things are.
func devEnvironment(own map[string]string, outside envconfig.Lookuper) envconfig.Lookuper {
	return lookup(func(key string) (string, bool) {
		if value, ok := own[key]; ok {
			return value, true
		}
		if key == "TEMPORAL_CONFIG_FILE" {
			return os.DevNull, true // a profile there may name another server's TLS
		}
		if strings.HasPrefix(key, "TEMPORAL_") {
			return "", false
		}
		return outside.Lookup(key)
	})
}

type lookup func(key string) (string, bool)

func (l lookup) Lookup(key string) (string, bool) { return l(key) }

func isSet(env envconfig.Lookuper, key string) bool {
	value, ok := env.Lookup(key)
	return ok && value != ""
}
