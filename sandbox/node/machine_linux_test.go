package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"persia/internal/skiptest"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

// TestMain also runs this program as the first process of a machine, and as one that
// creates a machine and is killed before it starts it.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "machine":
		slog.Error("boot", "error", Boot(os.Args[3], slog.New(slog.NewTextHandler(os.Stderr, nil))))
		os.Exit(1)
	case len(os.Args) == 3 && os.Args[1] == "create":
		if err := createOnly(os.Args[2]); err != nil {
			slog.Error("create", "error", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// createOnly creates the machine of the options in a file, and kills this process.
func createOnly(optionsFile string) error {
	o, err := Read(optionsFile)
	if err != nil {
		return err
	}
	if err := o.prepare("node-a"); err != nil {
		return err
	}
	if _, err := o.create(); err != nil {
		return err
	}
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}

// needNode skips a test where no node can run.
func needNode(t *testing.T) {
	t.Helper()
	if err := Missing(); err != nil {
		skiptest.Skip(t, err)
	}
}

func TestAMachineLeavesNothingBehind(t *testing.T) {
	needNode(t)
	o := testOptions(t)
	mounts := read(t, "/proc/self/mountinfo")
	shutDown := startMachine(t, o)
	remains, err := Remains(o.Dir)
	require.NoError(t, err)
	assert.Contains(t, remains, "/sys/class/net/"+linkOf(o.Dir).name, "the host's end of the link")
	assert.Contains(t, remains, "/run/runc/"+nameOf(o.Dir), "runc's record")
	assert.Greater(t, len(remains), 2, "and one control group or more")
	assert.Equal(t, mounts, read(t, "/proc/self/mountinfo"), "the host sees none of the machine's mounts")
	assert.Equal(t, "0\n", read(t, "/proc/sys/vm/panic_on_oom"))
	peak, err := PeakMemory(o.Dir)
	require.NoError(t, err)
	assert.Greater(t, peak, int64(10<<20), "containerd alone takes so much")

	shutDown()
	assertNothingLeft(t, o)
}

// The first process of a machine that was created but not started does not read from its
// lifeline yet.
func TestAMachineThatWasNotStartedIsRemoved(t *testing.T) {
	needNode(t)
	for _, test := range []struct {
		name   string
		remove func(*testing.T, Options)
	}{
		{"by CleanUp", func(t *testing.T, o Options) { require.NoError(t, CleanUp(o.Dir)) }},
		{"by the next start", func(t *testing.T, o Options) { startMachine(t, o)() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := testOptions(t)
			require.NoError(t, os.MkdirAll(o.Dir, 0o755))
			require.NoError(t, o.Write(filepath.Join(o.Dir, "options.json")))
			killed := exec.Command("/proc/self/exe", "create", filepath.Join(o.Dir, "options.json"))
			killed.Stdout, killed.Stderr = os.Stdout, os.Stderr
			require.EqualError(t, killed.Run(), "signal: killed")
			pid, err := readPID(filepath.Join(o.Dir, "pid"))
			require.NoError(t, err)
			first, err := process.Find(pid)
			require.NoError(t, err)
			require.True(t, first.Running(), "the first process outlives its killed parent")
			remains, err := Remains(o.Dir)
			require.NoError(t, err)
			assert.Contains(t, remains, "/run/runc/"+nameOf(o.Dir))

			test.remove(t, o)
			assert.False(t, first.Running(), "the first process has ended")
			assertNothingLeft(t, o)
		})
	}
}

// startMachine runs a machine until its kubelet has been started, the last program. It
// returns a function that shuts the machine down.
func startMachine(t *testing.T, o Options) (shutDown func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runMachine(ctx, o, "node-a", slog.New(slog.DiscardHandler)) }()
	require.Eventually(t, func() bool {
		log, _ := os.ReadFile(o.path(logDir, "kubelet.log"))
		return log != nil || len(ended) > 0
	}, time.Minute, 100*time.Millisecond)
	if len(ended) > 0 {
		t.Fatal(<-ended)
	}
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func assertNothingLeft(t *testing.T, o Options) {
	t.Helper()
	remains, err := Remains(o.Dir)
	require.NoError(t, err)
	assert.Empty(t, remains, "the link, the control groups, and runc's record go with the machine")
	processes, err := exec.Command("pgrep", "-f", o.Dir).CombinedOutput()
	assert.Error(t, err, "processes of the machine: %s", processes)
	require.NoError(t, os.RemoveAll(o.Dir), "nothing is mounted there")
}

func TestLinksAreDifferent(t *testing.T) {
	a, b := linkOf("/one/.sandbox/train/node"), linkOf("/two/.sandbox/train/node")
	assert.NotEqual(t, a, b)
	assert.Equal(t, a, linkOf("/one/.sandbox/train/node"))
	for _, l := range []link{a, b} {
		assert.LessOrEqual(t, len(l.name), 15, "the kernel's limit")
		assert.True(t, strings.HasPrefix(l.host.String(), "198.1"), l.host)
		assert.Equal(t, l.host.Next(), l.machine)
	}
}

// testOptions returns the options of a machine that has no programs but containerd and
// the pause program, and whose control plane does not answer.
func testOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	tools := toolchain.In(filepath.Join(dir, "bin"))
	build := exec.Command("go", "build", "-o", tools.Pause, "./pause")
	build.Dir = "../toolchain/node-network"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	o := Options{
		Dir: filepath.Join(dir, "node"), Disks: filepath.Join(dir, "disks"),
		Kubeconfig: filepath.Join(dir, "kubeconfig"), PKI: dir, Tools: tools,
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:29999"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	require.NoError(t, clientcmd.WriteToFile(*config, o.Kubeconfig))
	writeAuthority(t, dir)
	return o
}

func writeAuthority(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"ca.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"ca.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
