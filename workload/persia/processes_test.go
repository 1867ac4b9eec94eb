package persia

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConnected: a connection is found behind descriptors that are closed meanwhile, and in
// another process than one that has ended.
func TestConnected(t *testing.T) {
	t.Parallel()
	const script = `
import os, socket
import processes

server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
port = server.getsockname()[1]
client = socket.create_connection(("127.0.0.1", port))
list_folder = os.listdir
os.listdir = lambda folder: ["1000000"] + list_folder(folder)
ended = 2 ** 30
print(processes.connected([ended, os.getpid()], port))
client.close()
print(processes.connected([ended, os.getpid()], port))
`
	output, err := exec.Command("python3", "-B", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, "True\nFalse\n", string(output))
}
