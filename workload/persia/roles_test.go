package persia

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// older is a container with a release of PERSIA without persia-launcher: stand-ins for its programs
// write their arguments to a file.
type older struct {
	t   *testing.T
	dir string
}

// newOlder makes stand-ins that end with a script of bash.
func newOlder(t *testing.T, end string) older {
	t.Helper()
	o := older{t, t.TempDir()}
	for _, program := range []string{"python", "persia-middleware-server", "persia-embedding-server"} {
		text := "#!/bin/bash\nprintf '%s\\n' \"${0##*/}\" \"$@\" >" + o.path("arguments.new") +
			"\nmv " + o.path("arguments.new") + " " + o.path("arguments") + "\n" + end + "\n"
		require.NoError(t, os.WriteFile(o.path(program), []byte(text), 0o700))
	}
	return o
}

func (o older) path(name string) string { return filepath.Join(o.dir, name) }

// env returns the environment of a role.
func (o older) env() map[string]string {
	return map[string]string{
		"PERSIA_PYTHON": o.path("python"), "PERSIA_RUNTIME": o.dir, "PERSIA_PORT": "23333",
		"PERSIA_GLOBAL_CONFIG": "/config/global config.yml", "PERSIA_EMBEDDING_CONFIG": "/config/embedding.yml",
		"PERSIA_NN_WORKER_ENTRY": "/code/train.py", "PERSIA_DATALOADER_ENTRY": "/code/data_compose.py",
		"REPLICA_INDEX": "1", "REPLICA_SIZE": "2", "NODE_RANK": "1", "NPROC_PER_NODE": "8",
		"MASTER_ADDR": "criteo-nn-worker-0", "MASTER_PORT": "23456",
	}
}

func variables(env map[string]string) []string {
	list := []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// arguments are the arguments of a stand-in, with its own name first.
func (o older) arguments() []string {
	o.t.Helper()
	text, err := os.ReadFile(o.path("arguments"))
	require.NoError(o.t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// run runs roles.sh to its end.
func (o older) run(env map[string]string, args ...string) (status int, output string) {
	o.t.Helper()
	command := exec.Command("bash", append([]string{"roles.sh"}, args...)...)
	command.Env = variables(env)
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		o.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(text)
}

var serverArguments = []string{"--port", "23333", "--global-config", "/config/global config.yml",
	"--embedding-config", "/config/embedding.yml", "--replica-index", "1", "--replica-size", "2"}

// TestRoles checks that each role starts and ends as in older releases.
func TestRoles(t *testing.T) {
	for role, want := range map[string][]string{
		"trainer": {"python", "-m", "torch.distributed.launch", "--nproc_per_node=8", "--nnodes=2", "--node_rank=1",
			"--master_addr=criteo-nn-worker-0", "--master_port=23456", "/code/train.py"},
		"datacompose": {"python", "/code/data_compose.py"},
		"middleware":  append([]string{"persia-middleware-server"}, serverArguments...),
		"embserver":   append([]string{"persia-embedding-server"}, serverArguments...),
	} {
		for _, status := range []int{0, 42} {
			t.Run(role+" that ends with "+strconv.Itoa(status), func(t *testing.T) {
				o := newOlder(t, "exit "+strconv.Itoa(status))
				got, output := o.run(o.env(), role)
				assert.Equal(t, status, got, output)
				assert.Equal(t, want, o.arguments())
			})
		}
	}
}

func TestRolesMakeTheLogDirectory(t *testing.T) {
	o := newOlder(t, "exit 0")
	env := o.env()
	env["LOG_DIR"] = o.path("logs/of this/job")
	status, output := o.run(env, "embserver")
	assert.Zero(t, status, output)
	assert.DirExists(t, env["LOG_DIR"])
}

func TestRolesMisused(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		without []string
		says    string
	}{
		"without a role":    {nil, nil, "usage: roles.sh trainer|datacompose|middleware|embserver"},
		"with two roles":    {[]string{"trainer", "embserver"}, nil, "usage: roles.sh"},
		"an unknown role":   {[]string{"nn-worker"}, nil, "unknown role nn-worker: want trainer, datacompose, middleware or embserver"},
		"without a master":  {[]string{"trainer"}, []string{"MASTER_ADDR", "MASTER_PORT"}, "trainer needs what is not set: MASTER_ADDR MASTER_PORT"},
		"without an entry":  {[]string{"datacompose"}, []string{"PERSIA_DATALOADER_ENTRY"}, "datacompose needs what is not set: PERSIA_DATALOADER_ENTRY"},
		"without a runtime": {[]string{"middleware"}, []string{"PERSIA_RUNTIME"}, "middleware needs what is not set: PERSIA_RUNTIME"},
		"without an index":  {[]string{"embserver"}, []string{"REPLICA_INDEX"}, "embserver needs what is not set: REPLICA_INDEX"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOlder(t, "exit 0")
			env := o.env()
			for _, name := range test.without {
				delete(env, name)
			}
			status, output := o.run(env, test.args...)
			assert.Equal(t, 2, status)
			assert.Contains(t, output, "roles.sh: "+test.says)
			assert.NoFileExists(t, o.path("arguments"))
		})
	}
}

// TestRolesAreStopped: SIGTERM reaches the program through both scripts.
func TestRolesAreStopped(t *testing.T) {
	script, err := filepath.Abs("roles.sh")
	require.NoError(t, err)
	o := newOlder(t, "trap 'touch stopped; exit 7' TERM; touch ready; while :; do sleep 0.05; done")
	j := newTraining(t, "nn-worker=1,dataloader=0")
	r := j.startCommand("nn-worker-0", []string{"/bin/bash", script, "middleware"}, append(variables(o.env()),
		"REPLICA_INDEX=0", "PERSIA_GLOBAL_CONFIG="+script, "PERSIA_EMBEDDING_CONFIG="+script, "PERSIA_NN_WORKER_ENTRY="+script)...)
	j.awaits("ready")
	assert.Equal(t, 7, r.stop())
	assert.FileExists(t, filepath.Join(j.dir, "stopped"))
	assert.Equal(t, "persia-middleware-server", o.arguments()[0])
}
