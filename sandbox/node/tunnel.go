package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
)

// ServeTunnel passes connections on to where only this process can connect: it answers the CONNECT of HTTP
// on a Unix socket until stop is called. An API server asks for its connections in this way. dial connects to
// an address, HOST:PORT.
func ServeTunnel(socket string, dial func(ctx context.Context, address string) (net.Conn, error)) (stop func(), err error) {
	// Left by a process that was killed.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerConnect(w, r, dial) })}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}

// answerConnect answers a request for a connection.
func answerConnect(w http.ResponseWriter, r *http.Request, dial func(context.Context, string) (net.Conn, error)) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	to, err := dial(r.Context(), r.RequestURI)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = to.Close() }()
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = from.Close() }()
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, copied := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(copied[0], copied[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// DialTunnel asks for a connection to an address at a socket that [ServeTunnel] serves.
func DialTunnel(ctx context.Context, socket, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("ask for a connection to %s: %w", address, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	if err := ask(connection, address); err != nil {
		_ = connection.Close()
		return nil, fmt.Errorf("ask %s for a connection to %s: %w", socket, address, err)
	}
	return connection, nil
}

func ask(connection net.Conn, address string) error {
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return err
	}
	// Byte by byte, because what follows the answer is not for this reader.
	answer, err := http.ReadResponse(bufio.NewReaderSize(oneByte{connection}, 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	return nil
}

// oneByte reads no more than it is asked for, even if there is more.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }
