package dev

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
)

// Chosen ports lie below those that systems hand to outgoing connections, so
// that a part finds its port free when it is started again.
const lowestPort, highestPort = 20000, 32000

// choosePorts fills every zero with a free port of the loopback interface. All
// listeners are held until the last port is chosen: picked one after the other,
// the same port may come twice.
func choosePorts(ports ...*int) error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, port := range ports {
		if *port != 0 {
			continue
		}
		l, err := listenAnywhere()
		if err != nil {
			return fmt.Errorf("choose a port: %w", err)
		}
		held = append(held, l)
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

func listenAnywhere() (l net.Listener, err error) {
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// portTaken reports whether a process ended because somebody else has its port.
// A port chosen by us may be taken between the choice and the start.
func portTaken(err error) bool {
	exit, ok := errors.AsType[*ExitError](err)
	return ok && strings.Contains(strings.ToLower(strings.Join(exit.LastLines, "\n")), "address already in use")
}
