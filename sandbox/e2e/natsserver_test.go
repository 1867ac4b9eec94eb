package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// natsServer is a real server that replaces a pod.
type natsServer struct {
	pod                       corev1.Pod
	client, route, monitoring int
	file                      string
	process                   *exec.Cmd
}

func (s *natsServer) url() string { return fmt.Sprintf("nats://localhost:%d", s.client) }

// natsServers are the servers of a cluster, by the names of their pods.
type natsServers []*natsServer

// servers starts a real server on loopback for each pod: with the command of the
// pod and the configuration that the operator has written, in which only ports,
// hosts and paths are other ones.
func (n *nats) servers(t *testing.T) natsServers {
	t.Helper()
	dir := t.TempDir()
	var servers natsServers
	for _, pod := range n.assertServers(t, 3) {
		// The operator adds the route to a server after it has created the pod.
		n.awaitConfiguration(t, routeOf(pod))
		ports := freePorts(t, 3)
		servers = append(servers, &natsServer{pod: pod, client: ports[0], route: ports[1], monitoring: ports[2],
			file: filepath.Join(dir, pod.Name+".conf")})
	}
	for _, server := range servers {
		servers.write(t, server, n.configuration(t))
		server.start(t)
	}
	servers.awaitRoutes(t)
	return servers
}

// routeOf returns the route to the server in a pod.
func routeOf(pod corev1.Pod) string {
	return fmt.Sprintf("nats://%s.%s-mgmt.nats-io.svc:6222", pod.Name, broker)
}

// write adapts the configuration to a server on loopback. All else stays as the
// operator has written it.
func (s natsServers) write(t *testing.T, server *natsServer, text string) {
	t.Helper()
	var configuration map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &configuration))
	assert.Equal(t, 4222.0, configuration["port"])
	assert.Equal(t, 8222.0, configuration["http_port"])
	delete(configuration, "http_port")
	maps.Copy(configuration, map[string]any{
		"host": "127.0.0.1", "port": server.client, "http": fmt.Sprintf("127.0.0.1:%d", server.monitoring),
	})
	cluster := configuration["cluster"].(map[string]any)
	var routes []string
	for _, other := range s {
		assert.Contains(t, cluster["routes"], routeOf(other.pod))
		routes = append(routes, fmt.Sprintf("nats://localhost:%d", other.route))
	}
	assert.Len(t, cluster["routes"], len(s))
	maps.Copy(cluster, map[string]any{"host": "127.0.0.1", "port": server.route, "routes": routes})
	adapted, err := json.MarshalIndent(configuration, "", "  ")
	require.NoError(t, err)
	adapted = bytes.ReplaceAll(adapted, []byte(`"/etc/`), []byte(`"`+filepath.Dir(server.file)+"/"))
	require.NoError(t, os.WriteFile(server.file, adapted, 0o600))
}

// start runs the pod's command until the test ends.
func (s *natsServer) start(t *testing.T) {
	t.Helper()
	command := s.pod.Spec.Containers[0].Command
	own := strings.NewReplacer(
		"/etc/nats-config/nats.conf", s.file,
		"/var/run/nats/nats.pid", s.file+".pid",
		fmt.Sprintf("%s.%s-mgmt.nats-io.svc", s.pod.Name, broker), fmt.Sprintf("localhost:%d", s.route))
	var args []string
	for _, arg := range command[1:] {
		args = append(args, own.Replace(arg))
	}
	log, err := os.Create(s.file + ".log")
	require.NoError(t, err)
	s.process = exec.Command(tools.NATSServer, args...)
	s.process.Stdout, s.process.Stderr = log, log
	require.NoError(t, s.process.Start())
	t.Cleanup(func() {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		_ = log.Close()
		if t.Failed() {
			logFiles(t, s.file+".log")
		}
	})
}

// awaitRoutes waits until every server knows all others.
func (s natsServers) awaitRoutes(t *testing.T) {
	t.Helper()
	for _, server := range s {
		await(t, func() bool {
			var about struct {
				Routes []struct {
					Remote string `json:"remote_id"`
				} `json:"routes"`
			}
			response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/routez", server.monitoring))
			if err != nil {
				return false
			}
			defer func() { _ = response.Body.Close() }()
			remotes := map[string]bool{}
			err = json.NewDecoder(response.Body).Decode(&about)
			for _, route := range about.Routes {
				remotes[route.Remote] = true
			}
			return err == nil && len(remotes) == len(s)-1
		}, "%s has routes to all others", server.pod.Name)
	}
}

func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func connect(t *testing.T, url string, options ...natsgo.Option) *natsgo.Conn {
	t.Helper()
	connection, err := natsgo.Connect(url, append(options, natsgo.Timeout(patience))...)
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	return connection
}
