package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
)

// standIns replace the modules of PyTorch and PERSIA for one nn-worker.
const standIns = `
import json, sys
from unittest import mock

torch, dist, data = mock.MagicMock(), mock.MagicMock(), mock.MagicMock()
torch.nn.Module = data.IterableDataset = object
torch.distributed = dist
for name in ("numpy", "persia", "persia.ctx", "persia.distributed", "persia.embedding.data", "persia.embedding.optim", "persia.env", "persia.logger"):
    sys.modules[name] = mock.MagicMock()
sys.modules.update({"torch": torch, "torch.distributed": dist, "persia.data": data})
sys.modules["persia.env"].get_world_size.return_value, sys.modules["persia.env"].get_rank.return_value = 1, 0
sys.path[:0] = ["../examples/training", "../examples/shop"]
import checkpoint, clicks, train
`

// trainScript runs the loop of the example's nn-worker with batches that come as they are given.
const trainScript = standIns + `
before, come = json.loads(sys.argv[1])
clicks.BATCHES = 4

def batch(number):
    one = mock.MagicMock()
    one.consume_all_meta_data.return_value = str(number).encode()
    return one

data.DataLoader = train.DataLoader = lambda *_, **__: map(batch, come)
ctx = mock.MagicMock()
ctx.forward.return_value = mock.MagicMock(), [mock.MagicMock()]
ctx.backward.return_value = 0.5
trained = set(before)
train.train(ctx, trained)
print("trained", sorted(trained))
`

// resumeScript has the examples load a checkpoint, whose learning rate differs from the script's.
const resumeScript = standIns + `
for load in lambda ctx: train.load(ctx, "checkpoint"), checkpoint.load:
    ctx = mock.MagicMock()
    ctx.dense_optimizer.param_groups = [{"lr": 1, "eps": 1}]
    ctx.load_torch_state_dict = lambda part, *_, **__: setattr(part, "param_groups", [{"lr": 2, "eps": 2}])
    load(ctx)
    print(ctx.dense_optimizer.param_groups)
`

// TestExampleLearningRate: a training that resumes goes on with the learning rate that its script has now.
func TestExampleLearningRate(t *testing.T) {
	command := exec.Command("python3", "-B", "-c", resumeScript)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "PERSIA_RESUME_DIR=checkpoint"}
	output, err := command.CombinedOutput()
	assert.NoError(t, err)
	assert.Equal(t, "[{'lr': 1, 'eps': 2}]\n[{'lr': 1, 'eps': 2}]\n", string(output))
}

// TestExampleCountsBatches: PERSIA may send a batch twice, and ends the loop without an
// error when batches stay away. Neither may pass for a training on all data.
func TestExampleCountsBatches(t *testing.T) {
	for name, test := range map[string]struct {
		batches string
		says    string
		fails   bool
	}{
		"all, in any order":       {`[[], [1, 0, 3, 2]]`, "trained [0, 1, 2, 3]\n", false},
		"what a checkpoint lacks": {`[[0, 1], [2, 3]]`, "trained [0, 1, 2, 3]\n", false},
		"one twice":               {`[[], [0, 1, 1, 2]]`, "batch 1 came twice\n", true},
		"one stays away":          {`[[], [0, 1, 2]]`, "batches stopped coming after step 3 of 4\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := filepath.Join(t.TempDir(), "progress")
			command := exec.Command("python3", "-B", "-c", trainScript, test.batches)
			command.Env = []string{"PATH=" + os.Getenv("PATH"), "PERSIA_PROGRESS_FILE=" + told}
			output, err := command.CombinedOutput()
			assert.Equal(t, test.fails, err != nil, "%s", output)
			assert.Equal(t, test.says, string(output))
			assert.FileExists(t, told, "the nn-worker tells of its progress")
		})
	}
}

// The first three are newer than Python 3.7.
const parsePython37 = `import ast, sys
for path in ["(n := 1)", "def f(a, /): pass", "f'{n=}'"] + sys.argv[1:]:
    try: ast.parse(open(path).read() if path.endswith(".py") else path, feature_version=(3, 7))
    except SyntaxError: print(path)
`

// TestPythonSyntax: images of PERSIA have Python 3.7. Another Python parses its syntax, where none is installed.
func TestPythonSyntax(t *testing.T) {
	command := exec.Command("sh", "-c", `exec python3 -c "$0" $(git ls-files "*.py")`, parsePython37)
	command.Dir = root
	assert.Equal(t, "(n := 1)\ndef f(a, /): pass\nf'{n=}'\n", string(testkit.Must(command.Output())(t)))
}
