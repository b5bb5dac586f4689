package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A chunk is one entry of a container's log: a line with its newline, or a
// part of a line that is longer than the daemon's buffer.
type takeChunk func(stderr bool, at time.Time, chunk []byte)

// largestFrame is far above what a daemon sends: 16 KiB and a stamp.
const largestFrame = 1 << 20

// readFrames reads the log of a container without a terminal: frames of eight
// bytes of header (stream, 0, 0, 0, length) and a chunk. It returns io.EOF, not
// wrapped, if the log ended between two frames.
func readFrames(r io.Reader, take takeChunk) error {
	var header [8]byte
	var frame []byte
	for {
		switch _, err := io.ReadFull(r, header[:]); {
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return fmt.Errorf("read the log: %w", err)
		}
		size := binary.BigEndian.Uint32(header[4:])
		if size > largestFrame {
			return fmt.Errorf("read the log: a frame of %d bytes is no frame", size)
		}
		if cap(frame) < int(size) {
			frame = make([]byte, size)
		}
		frame = frame[:size]
		if _, err := io.ReadFull(r, frame); err != nil {
			return fmt.Errorf("read the log: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
		const systemError = 3
		if header[0] == systemError {
			return fmt.Errorf("read the log: the daemon says: %s", frame)
		}
		at, chunk := stamped(frame)
		take(header[0] == 2, at, chunk)
	}
}

// readTerminal reads the log of a container with a terminal: bare lines that
// end in \r\n, of both streams as one.
func readTerminal(r *bufio.Reader, take takeChunk) error {
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			at, chunk := stamped(line)
			if end := len(chunk) - 2; bytes.HasSuffix(chunk, []byte("\r\n")) {
				chunk[end] = '\n'
				chunk = chunk[:end+1]
			}
			take(false, at, chunk)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return io.EOF
		case err != nil:
			return fmt.Errorf("read the log: %w", err)
		}
	}
}

// stamped takes the stamp off a chunk. A chunk without one keeps a zero time.
func stamped(entry []byte) (time.Time, []byte) {
	text, chunk, found := bytes.Cut(entry, []byte(" "))
	if !found {
		text, chunk = bytes.TrimSuffix(entry, []byte("\n")), entry[len(bytes.TrimSuffix(entry, []byte("\n"))):]
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return time.Time{}, entry
	}
	return at, chunk
}
