package node

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTunnel: a connection through two tunnels, whose server speaks first.
func TestTunnel(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			connection, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, "hello\n")
			_, _ = io.Copy(connection, connection)
		}
	}()
	dir := t.TempDir()
	far, near := filepath.Join(dir, "far"), filepath.Join(dir, "near")
	stop, err := ServeTunnel(far, func(ctx context.Context, address string) (net.Conn, error) {
		if address != "pod:1" {
			return nil, errors.New("no such pod")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Addr().String())
	})
	require.NoError(t, err)
	t.Cleanup(stop)
	stop, err = ServeTunnel(near, func(ctx context.Context, address string) (net.Conn, error) { return DialTunnel(ctx, far, address) })
	require.NoError(t, err)
	t.Cleanup(stop)

	connection, err := DialTunnel(t.Context(), near, "pod:1")
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = io.WriteString(connection, "echo\n")
	require.NoError(t, err)
	text := make([]byte, len("hello\necho\n"))
	_, err = io.ReadFull(connection, text)
	require.NoError(t, err)
	assert.Equal(t, "hello\necho\n", string(text))

	_, err = DialTunnel(t.Context(), near, "pod:2")
	assert.ErrorContains(t, err, "no such pod")
	_, err = DialTunnel(t.Context(), filepath.Join(dir, "nothing"), "pod:1")
	assert.Error(t, err)
}
