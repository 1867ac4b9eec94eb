package bucket_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/internal/testkit"
	"persia/sandbox/bucket"
	"persia/sandbox/toolchain"
)

// repository is the folder of Pulumi.yaml.
const repository = "../.."

// node is the mount of a bucket on one node, by the real gcsfuse.
type node struct {
	t       *testing.T
	folder  string
	gcsfuse *exec.Cmd
}

// mountBucket mounts the bucket of a server with options as a volume has them.
func mountBucket(t *testing.T, server *httptest.Server, options ...string) *node {
	t.Helper()
	n := &node{t: t, folder: t.TempDir()}
	tools, err := toolchain.Build(t.Context(), filepath.Join(repository, "sandbox", "toolchain"), filepath.Join(repository, ".sandbox", "bin"), t.Output(), toolchain.OfBuckets)
	require.NoError(t, err)
	arguments := []string{"--foreground", "--log-severity=warning", "--implicit-dirs", "--anonymous-access", "--enable-hns=false", "--custom-endpoint", server.URL + "/storage/v1/"}
	log := testkit.Must(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	n.gcsfuse = exec.Command(tools.Path("gcsfuse"), append(append(arguments, options...), "checkpoints", n.folder)...)
	n.gcsfuse.Stdout, n.gcsfuse.Stderr = log, log
	n.gcsfuse.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, n.gcsfuse.Start())
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	require.Eventually(t, func() bool {
		mounts, err := os.ReadFile("/proc/self/mounts")
		return err == nil && strings.Contains(string(mounts), " "+n.folder+" fuse.gcsfuse ")
	}, time.Minute, 10*time.Millisecond, "gcsfuse mounts the bucket")
	return n
}

// kill ends gcsfuse as the kernel does when it has no memory left.
func (n *node) kill() {
	n.gcsfuse.Process.Kill()
	n.gcsfuse.Wait()
	syscall.Unmount(n.folder, syscall.MNT_DETACH)
}

func (n *node) path(name string) string { return filepath.Join(n.folder, name) }

// read returns the content of a file, or the error.
func (n *node) read(name string) string { return outcome(os.ReadFile(n.path(name))) }

// size returns the size of a file, or the error.
func (n *node) size(name string) string {
	info, err := os.Stat(n.path(name))
	if err != nil {
		return outcome(nil, err)
	}
	return fmt.Sprint(info.Size())
}

// list returns the names in a folder.
func (n *node) list(name string) string {
	entries, err := os.ReadDir(n.path(name))
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return outcome([]byte(strings.Join(names, " ")), err)
}

// replace writes a file as scripts do: another file, and a rename.
func (n *node) replace(name, content string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(n.path(name+".tmp"), []byte(content), 0o644))
	require.NoError(n.t, os.Rename(n.path(name+".tmp"), n.path(name)))
}

// open opens a file for writing, and writes to it.
func (n *node) open(name, content string) *os.File {
	n.t.Helper()
	file := testkit.Must(os.Create(n.path(name)))(n.t)
	testkit.Must(file.WriteString(content))(n.t)
	return file
}

func outcome(content []byte, err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return string(content)
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}

// python runs a script beside the modules of the coordinator, with mounts as its arguments, and returns what it prints.
func python(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	command := exec.Command("python3", append([]string{"-c", script}, arguments...)...)
	modules := testkit.Must(filepath.Abs(filepath.Join(repository, "workload", "persia")))(t)
	command.Env = append(os.Environ(), "PYTHONPATH="+modules, "PYTHONDONTWRITEBYTECODE=1")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return strings.TrimSpace(string(output))
}

// TestBucketSemantics holds the table of docs/guides/storage.md against two nodes with the real gcsfuse.
func TestBucketSemantics(t *testing.T) {
	const kept = 3 * time.Second // in place of gcsfuse's minute
	for _, cache := range []struct {
		name    string
		options []string
		// How long a node shows an object as it has seen it: kept, for ever, or not at all.
		stale time.Duration
	}{
		{"for a while", []string{fmt.Sprintf("--metadata-cache-ttl-secs=%d", kept/time.Second)}, kept},
		{"for ever", []string{"--metadata-cache-ttl-secs=-1"}, 1 << 62},
		{"not at all", []string{"--metadata-cache-ttl-secs=0"}, 0},
	} {
		t.Run("metadata is cached "+cache.name, func(t *testing.T) {
			t.Parallel()
			served, server := serve(t)
			writer, reader := mountBucket(t, server, cache.options...), mountBucket(t, server, cache.options...)
			// sees asserts what the reader sees after a change: the old state while it is cached, and then the new one.
			sees := func(t *testing.T, old, changed string, look func() string) {
				t.Helper()
				switch cache.stale {
				case 0:
					assert.Equal(t, changed, look(), "at once")
				case kept: // the change itself may take as long, as the bucket takes one write a second
					assert.Eventually(t, func() bool { return look() == changed }, 20*kept, 100*time.Millisecond, "later, in place of %s: %s", old, changed)
				default:
					assert.Never(t, func() bool { return look() != old }, 2*kept, 500*time.Millisecond, "ever, but %s", old)
				}
			}
			t.Run("a file is there when it is closed", func(t *testing.T) {
				require.NoError(t, os.Mkdir(writer.path("a"), 0o755))
				file := writer.open("a/written", "0123456789")
				require.NoError(t, file.Sync())
				assert.Equal(t, "10", writer.size("a/written"), "the writer sees what it has written")
				assert.Empty(t, reader.list("a"), "what is flushed is not there")
				require.NoError(t, file.Close())
				assert.Equal(t, "written", reader.list("a"), "listings are never cached")
				assert.Equal(t, "0123456789", reader.read("a/written"))
			})
			t.Run("a file that a node has looked for in vain", func(t *testing.T) {
				assert.Equal(t, "no such file or directory", reader.size("missed"))
				require.NoError(t, os.WriteFile(writer.path("missed"), []byte("now"), 0o644))
				assert.Eventually(t, func() bool { return reader.read("missed") == "now" }, time.Minute, 100*time.Millisecond, "within 5 s, unless nothing is cached")
			})
			t.Run("a file that is replaced", func(t *testing.T) {
				writer.replace("replaced", "old")
				require.Equal(t, "old", reader.read("replaced"))
				writer.replace("replaced", "changed")
				sees(t, "3", "7", func() string { return reader.size("replaced") })
			})
			t.Run("a file that is removed", func(t *testing.T) {
				writer.replace("removed", "old")
				require.Equal(t, "3", reader.size("removed"))
				require.NoError(t, os.Remove(writer.path("removed")))
				assert.NotContains(t, reader.list(""), "removed", "listings are never cached")
				sees(t, "3", "no such file or directory", func() string { return reader.size("removed") })
			})
			t.Run("of two writers, the later one fails", func(t *testing.T) {
				writer.replace("contended", "old")
				require.Equal(t, "old", reader.read("contended"))
				first, second := writer.open("contended", "first"), reader.open("contended", "second")
				require.NoError(t, first.Close())
				assert.Equal(t, "stale file handle", outcome(nil, second.Close()))
				assert.Equal(t, "first", string(served.Content("contended")))
			})
			t.Run("folders cannot be renamed", func(t *testing.T) {
				require.NoError(t, os.Mkdir(writer.path("b"), 0o755))
				require.NoError(t, os.WriteFile(writer.path("b/file"), nil, 0o644))
				assert.Equal(t, "too many open files", outcome(nil, os.Rename(writer.path("b"), writer.path("c"))))
			})
			t.Run("a kill while a file is written", func(t *testing.T) {
				writer.replace("killed", "old")
				replaced, created := writer.open("killed", strings.Repeat("x", 40<<20)), writer.open("created", strings.Repeat("x", 40<<20))
				created.Sync()
				writer.kill()
				replaced.Close()
				created.Close()
				content := served.Content("killed")
				assert.Equal(t, "old", fmt.Sprintf("%.9s", content), "what was there stays")
				content = served.Content("created")
				assert.Empty(t, len(content), "what was flushed to no avail")
			})
		})
	}
}

// TestRecordInBucket cuts a coordinator off: its node shows the record of the run as it was, and it must
// not write over the record of the coordinator that has taken over, or remove a checkpoint.
func TestRecordInBucket(t *testing.T) {
	const script = `
import os, sys, types, record
first, second = (
    types.SimpleNamespace(record=record.Record(folder, "job"), values=record.blank("job"), claimed=None, holder=folder) for folder in sys.argv[1:])

def take_over(job, pod):
    job.claimed = job.record.read()
    job.values = record.claimed(job.values, job.claimed, pod, job.holder)
    renew(job)

def renew(job):
    job.values["beat"] += 1
    try:
        job.record.write(job.values, job.claimed)
        job.claimed = None
        return "renewed"
    except (OSError, record.Superseded) as error:
        return type(error).__name__

take_over(first, "first")
print(renew(first))
take_over(second, "second")
print(renew(first))
# The other coordinator takes over while this one, which has looked, writes.
check, looks = second.record.check, []
def look(*arguments):
    looks.append(check(*arguments))
    if len(looks) == 2:
        take_over(first, "first")
second.record.check = look
print(renew(second))
print(renew(first))
# Someone removes the record on another machine. Then a coordinator is killed while it creates one.
os.remove(second.record.file)
print(first.record.read(), "renewed" in (renew(first), renew(first)))
second.record.read()
os.remove(second.record.file)
open(second.record.file, "xb").close()
print(first.record.read(), renew(first))
`
	for name, option := range map[string]string{"for ever": "--metadata-cache-ttl-secs=-1", "not at all": "--metadata-cache-ttl-secs=0"} {
		t.Run("metadata is cached "+name, func(t *testing.T) {
			t.Parallel()
			served, server := serve(t)
			first, second := mountBucket(t, server, option), mountBucket(t, server, option)
			assert.Equal(t, "renewed\nSuperseded\nOSError\nrenewed\n{} True\n{} renewed", python(t, script, first.folder, second.folder))
			assert.Contains(t, string(served.Content("coordinator.json")), `"holder": "`+first.folder)
		})
	}
}

// TestCheckpointInBucket: a node looks while another writes a checkpoint as PERSIA does: it first closes an empty file.
func TestCheckpointInBucket(t *testing.T) {
	const script = `
import os, sys, checkpoints
writer, reader = sys.argv[1:]
folder = os.path.join(writer, "attempt-1")
for name, content in {"s0/0.emb": "x", "dense.pt": "model", "embedding_dump_done": "num_shards: 1\nnum_internal_shards: 1\n", "opt.pt": "optimizer"}.items():
    file = os.path.join(folder, name)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    open(file, "w").close()
    print(len(checkpoints.scan(reader).complete), end=" ")
    with open(file, "w") as opened:
        opened.write(content)
    print(len(checkpoints.scan(reader).complete), end=" ")
`
	_, server := serve(t)
	for _, ttl := range []string{"0", "60", "-1"} {
		option := "--metadata-cache-ttl-secs=" + ttl
		writer, reader := mountBucket(t, server, option, "--only-dir="+ttl), mountBucket(t, server, option, "--only-dir="+ttl)
		assert.Equal(t, "0 0 0 0 0 0 0 1", python(t, script, writer.folder, reader.folder), "how many complete checkpoints the reader sees after each step, with %s", option)
	}
}

// TestDenseStateInBucket: the bucket refuses no dense state of the example, and another node sees the newest one.
func TestDenseStateInBucket(t *testing.T) {
	const script = `
import ast, os, shutil, sys, types, checkpoints
writer, reader, example = sys.argv[1:]
sys.path.append(example)
import progress
part = types.SimpleNamespace(state_dict=dict)
ctx, gather, get_rank = types.SimpleNamespace(model=part, dense_optimizer=part), set, lambda: 0
torch = types.SimpleNamespace(save=lambda _, file: open(file, "w").write("model"))
source = ast.parse(open(os.path.join(example, "train.py")).read())
exec(ast.unparse([function for function in source.body if getattr(function, "name", "") in ("write", "save_dense")]))
os.environ.update(PERSIA_DENSE_DIR=os.path.join(writer, "dense-1"), PERSIA_ATTEMPT="2")
for batches in range(1, 5):
    save_dense(ctx, range(batches))
    print(os.path.basename(checkpoints.scan(reader, memory=1).dense), end=" ")
print(*sorted(os.listdir(os.environ["PERSIA_DENSE_DIR"])))
`
	served, server := serve(t)
	writer, reader := mountBucket(t, server, "--metadata-cache-ttl-secs=-1"), mountBucket(t, server, "--metadata-cache-ttl-secs=-1")
	seen := python(t, script, writer.folder, reader.folder, filepath.Join(repository, "examples", "training"))
	assert.Equal(t, "000002-000001 000002-000002 000002-000003 000002-000004 000002-000003 000002-000004", seen)
	assert.Empty(t, served.Refused, "writes within a second after another one of that name")
}

// TestSidecar measures gcsfuse while files are created and written at the same time. An embedding parameter
// server does so with four, and the default memory of the sidecar is for that. The fifth takes disk.
func TestSidecar(t *testing.T) {
	const fileSize = 96 << 20
	memory, _ := reflect.TypeFor[config.Sidecar]().FieldByName("Memory")
	planned := resource.MustParse(memory.Tag.Get("default"))
	for count, disk := range map[int]int64{4: 0, 5: fileSize} {
		t.Run(fmt.Sprint(count, " files"), func(t *testing.T) {
			_, server := serve(t)
			n := mountBucket(t, server, "--temp-dir="+filepath.Join(repository, ".sandbox")) // /tmp may be in memory
			var files []*os.File
			for i := range count {
				assert.NoError(t, os.WriteFile(n.path(fmt.Sprint(i)), nil, 0o644))
				files = append(files, n.open(fmt.Sprint(i), ""))
			}
			for range fileSize >> 20 {
				for _, file := range files {
					testkit.Must(file.Write(make([]byte, 1<<20)))(t)
				}
			}
			for _, file := range files {
				require.NoError(t, file.Close())
			}
			peak, written := n.kernelCount("status", "VmHWM:")<<10, n.kernelCount("io", "\nwrite_bytes:")
			t.Logf("gcsfuse took %d MiB of memory, of %d MiB, and %d MiB of disk", peak>>20, planned.Value()>>20, written>>20)
			assert.InEpsilon(t, planned.Value(), peak, 0.2, "bytes of memory")
			assert.InDelta(t, disk, written, 1<<20, "bytes of disk")
		})
	}
}

// kernelCount returns a number that the kernel has counted for gcsfuse.
func (n *node) kernelCount(file, name string) (count int64) {
	n.t.Helper()
	_, line, _ := strings.Cut(testkit.Read(n.t, fmt.Sprintf("/proc/%d/%s", n.gcsfuse.Process.Pid, file)), name)
	testkit.Must(fmt.Sscan(line, &count))(n.t)
	return count
}

// serve starts a server of an empty bucket named checkpoints.
func serve(t *testing.T) (*bucket.Server, *httptest.Server) {
	served := bucket.New("checkpoints")
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	return served, server
}
