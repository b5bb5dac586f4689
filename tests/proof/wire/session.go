package wire

import (
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgproto3"
)

func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.target.Host)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	s := &session{
		proxy: p, client: client, server: server,
		back: pgproto3.NewBackend(client, client), front: pgproto3.NewFrontend(server, server),
	}
	if err := s.start(); err != nil {
		return // the other side sees that the connection is gone
	}
	p.done.Go(func() {
		s.fromClient()
		s.end()
	})
	s.fromServer()
	s.end()
}

// end closes both sides, so that neither goroutine outlives the other.
func (s *session) end() {
	s.proxy.drop(s.client)
	s.proxy.drop(s.server)
}

// start passes on the beginning of a connection, up to the first ReadyForQuery.
func (s *session) start() error {
	for {
		message, err := s.back.ReceiveStartupMessage()
		if err != nil {
			return err
		}
		switch message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := s.client.Write([]byte("N")); err != nil {
				return err
			}
			continue
		}
		s.front.Send(message)
		if err := s.front.Flush(); err != nil {
			return err
		}
		if _, cancels := message.(*pgproto3.CancelRequest); cancels {
			return fmt.Errorf("a cancel request has no answer")
		}
		return s.greet()
	}
}

// greet passes on what the server wants to know of the client.
func (s *session) greet() error {
	for {
		message, err := s.front.Receive()
		if err != nil {
			return err
		}
		s.back.Send(message)
		if err := s.back.Flush(); err != nil {
			return err
		}
		switch message.(type) {
		case *pgproto3.ReadyForQuery:
			return nil
		case *pgproto3.AuthenticationCleartextPassword, *pgproto3.AuthenticationMD5Password,
			*pgproto3.AuthenticationSASL, *pgproto3.AuthenticationSASLContinue:
			if err := s.authenticate(); err != nil {
				return err
			}
		}
	}
}

func (s *session) authenticate() error {
	if err := s.back.SetAuthType(s.front.GetAuthType()); err != nil {
		return err
	}
	answer, err := s.back.Receive()
	if err != nil {
		return err
	}
	s.front.Send(answer)
	return s.front.Flush()
}

func (s *session) fromClient() {
	for {
		message, err := s.back.Receive()
		if err != nil || s.proxy.cut(Point{Client, name(message), false}) {
			return
		}
		s.front.Send(message)
		if s.front.Flush() != nil || s.proxy.cut(Point{Client, name(message), true}) {
			return
		}
	}
}

func (s *session) fromServer() {
	for {
		message, err := s.front.Receive()
		if err != nil || s.proxy.cut(Point{Server, name(message), false}) {
			return
		}
		s.back.Send(message)
		if s.back.Flush() != nil || s.proxy.cut(Point{Server, name(message), true}) {
			return
		}
	}
}
