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
print(processes.connected([ended, os.getpid()], port) == {os.getpid()})
client.close()
print(processes.connected([ended, os.getpid()], port) == set())
`
	output, err := exec.Command("python3", "-B", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, "True\nTrue\n", string(output))
}

// TestEndingLetsAProgramSave: the signal that ends a command does not end a program that the
// command then starts to save with.
func TestEndingLetsAProgramSave(t *testing.T) {
	t.Parallel()
	const script = `
import os, sys
from processes import Command

def saved(command):
    os.chdir(sys.argv[1])
    running = Command(["bash", "-c", command], dict(os.environ))
    while not os.path.exists("ready"):
        pass
    status = running.stop(60)
    return status, os.path.exists("saved")

print(saved("trap '(sleep 0.5; touch saved); exit 7' TERM; touch ready; while :; do sleep 0.05; done"))
`
	output, err := exec.Command("python3", "-B", "-c", script, t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), "(7, True)\n")
}
