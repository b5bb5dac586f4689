package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

// devPorts are the ports of leasehold dev; 0 is any free one.
type devPorts struct {
	UI       int `json:"ui"`
	Temporal int `json:"temporal"`
	Postgres int `json:"postgres"`
}

const portsFile = "ports.json"

// choosePorts takes the ports that were asked for, otherwise those of the last
// start that are still free: bookmarks and open shells go on working.
func (i *installation) choosePorts(asked devPorts) (devPorts, error) {
	var last devPorts
	text, err := os.ReadFile(i.path(portsFile))
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return asked, &refusedError{Err: fmt.Errorf("%s cannot be read (%w): remove it", i.path(portsFile), err)}
	}
	for _, choice := range []struct {
		flag        string
		asked, last *int
	}{
		{"--ui-port", &asked.UI, &last.UI},
		{"--temporal-port", &asked.Temporal, &last.Temporal},
		{"--postgres-port", &asked.Postgres, &last.Postgres},
	} {
		switch {
		case *choice.asked < 0 || *choice.asked > 65535:
			return asked, &refusedError{Err: fmt.Errorf("%s is %d: a port is between 1 and 65535", choice.flag, *choice.asked)}
		case *choice.asked != 0 && !portFree(*choice.asked):
			return asked, &refusedError{Err: fmt.Errorf("%s %d is taken: choose another, or leave it out for a free one", choice.flag, *choice.asked)}
		case *choice.asked == 0 && portFree(*choice.last):
			*choice.asked = *choice.last
		}
	}
	return asked, nil
}

func (i *installation) savePorts(ports devPorts) error {
	text, err := json.Marshal(ports)
	if err != nil {
		return err
	}
	return os.WriteFile(i.path(portsFile), text, 0o644)
}

// portFree says whether a port of the loopback interface can be listened on.
func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
