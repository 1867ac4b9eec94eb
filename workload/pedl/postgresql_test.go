//go:build unix

package pedl_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestPostgreSQLStarts starts the distribution's PostgreSQL with the settings that the program
// writes, and asks the server for its settings.
func TestPostgreSQLStarts(t *testing.T) {
	for name, test := range map[string]struct {
		settings fields
		want     map[string]string
	}{
		"by default": {nil, map[string]string{"max_connections": "2000", "shared_buffers": "512MB"}},
		"written": {fields{"postgresql.postgresqlExtendedConfig": fields{"maxConnections": 50, "logConnections": true, "workMem": "8MB", "logLinePrefix": `it's 100% a\b `}},
			map[string]string{"max_connections": "50", "shared_buffers": "512MB", "log_connections": "on", "work_mem": "8MB", "log_line_prefix": `it's 100% a\b `}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := in("kubernetes:core/v1:ConfigMap", "pedl-postgresql", `data["extended.conf"]`)(t, deployPEDL(t, test.settings))
			server := startPostgreSQL(t, settings.(string))
			for setting, want := range test.want {
				assert.Equal(t, want, server.show(setting), setting)
			}
		})
	}
}

// postgreSQL is a server that listens on a socket in its directory alone.
type postgreSQL struct {
	t        *testing.T
	bin, dir string
	unrooted *syscall.Credential
}

// startPostgreSQL makes a database and serves it with settings, included as Bitnami's
// image does, until the test ends.
func startPostgreSQL(t *testing.T, settings string) *postgreSQL {
	t.Helper()
	testkit.Processes(t)
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	require.NoError(t, err)
	if len(installed) == 0 {
		testkit.Skip(t, "there is no PostgreSQL in /usr/lib/postgresql: scripts/install-tests.sh installs it on Debian and Ubuntu")
	}
	p := &postgreSQL{t: t, bin: filepath.Dir(slices.Max(installed)), dir: t.TempDir()}
	p.dropRoot()
	data := filepath.Join(p.dir, "data")
	p.run("initdb", "-D", data, "--no-sync", "--auth=trust", "--username=postgres")
	included := filepath.Join(data, "conf.d")
	require.NoError(t, os.Mkdir(included, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(included, "extended.conf"), []byte(settings), 0o644))
	file, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("\ninclude_dir = 'conf.d'\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())

	server := p.command("postgres", "-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c", "fsync=off")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT) // ends connections, and then itself
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	require.Eventually(t, func() bool { return p.command("pg_isready", "-q", "-h", p.dir).Run() == nil },
		time.Minute, 50*time.Millisecond, "PostgreSQL takes connections")
	return p
}

// dropRoot runs the programs as another user if the tests run as root, as which PostgreSQL does not
// start.
func (p *postgreSQL) dropRoot() {
	p.t.Helper()
	if os.Getuid() != 0 {
		return
	}
	other, err := user.Lookup("nobody")
	require.NoError(p.t, err)
	uid, err := strconv.Atoi(other.Uid)
	require.NoError(p.t, err)
	gid, err := strconv.Atoi(other.Gid)
	require.NoError(p.t, err)
	p.unrooted = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	require.NoError(p.t, os.Chown(p.dir, uid, gid))
	require.NoError(p.t, os.Chmod(filepath.Dir(p.dir), 0o711))
}

func (p *postgreSQL) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"LC_ALL=C.UTF-8", "HOME=" + p.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.unrooted}
	return cmd
}

func (p *postgreSQL) run(program string, args ...string) string {
	p.t.Helper()
	output, err := p.command(program, args...).CombinedOutput()
	require.NoError(p.t, err, "%s: %s", program, output)
	return string(output)
}

// show returns the value of a setting.
func (p *postgreSQL) show(setting string) string {
	p.t.Helper()
	return strings.TrimSuffix(p.run("psql", "-h", p.dir, "-U", "postgres", "-At", "-c", "SHOW "+setting), "\n")
}
