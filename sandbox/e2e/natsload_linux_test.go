package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const (
	// loadBatch is about what a dataloader sends of a batch of some thousand samples.
	loadBatch = 1 << 20
	// loadPairs are the dataloaders that send, each to an embedding worker of its own.
	loadPairs = 120
)

// BenchmarkNATS measures how clusters of different sizes carry the batches of dataloaders
// to embedding workers. The servers are real and share this machine's cores, so the
// processor time of a batch shows the cost of another server. It does not show how much more
// many machines carry.
func BenchmarkNATS(b *testing.B) {
	for _, size := range []int{1, 3, 9, 60} {
		b.Run(fmt.Sprintf("servers=%d", size), func(b *testing.B) {
			started := time.Now()
			servers := startMesh(b, size)
			servers.await(b)
			formed := time.Since(started)
			send := connectPairs(b, servers)
			before := servers.cpu(b)
			b.ResetTimer()
			latencies := send(b)
			b.StopTimer()
			b.ReportMetric(formed.Seconds(), "mesh-s")
			b.ReportMetric((servers.cpu(b)-before).Seconds()*1000/float64(b.N), "server-cpu-ms/batch")
			b.ReportMetric(float64(servers.resident(b))/(1<<20)/float64(size), "MiB/server")
			slices.Sort(latencies)
			b.ReportMetric(latencies[len(latencies)*99/100].Seconds()*1000, "p99-ms")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// mesh is a cluster of NATS servers on loopback.
type mesh []*meshServer

type meshServer struct {
	client, route, monitoring int
	process                   *os.Process
}

// startMesh starts servers that know each other, as the operator configures them.
func startMesh(b *testing.B, size int) mesh {
	b.Helper()
	dir := b.TempDir()
	servers := make(mesh, size)
	var routes []string
	ports := freePorts(b, 3*size)
	for i := range servers {
		servers[i] = &meshServer{client: ports[3*i], route: ports[3*i+1], monitoring: ports[3*i+2]}
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", servers[i].route))
	}
	for i, s := range servers {
		file := filepath.Join(dir, strconv.Itoa(i)+".conf")
		text := fmt.Sprintf("host: 127.0.0.1\nport: %d\nhttp: \"127.0.0.1:%d\"\nmax_payload: %d\nmax_pending: %d\ncluster { name: load, host: 127.0.0.1, port: %d, routes: [%s] }\n",
			s.client, s.monitoring, payload, 4*payload, s.route, strings.Join(routes, ", "))
		require.NoError(b, os.WriteFile(file, []byte(text), 0o600))
		var log bytes.Buffer
		command := exec.Command(tools.NATSServer, "-c", file)
		command.Stdout, command.Stderr = &log, &log
		require.NoError(b, command.Start())
		s.process = command.Process
		b.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
			if b.Failed() {
				b.Log(log.String())
			}
		})
	}
	return servers
}

// await waits until every server has a route to every other one.
func (m mesh) await(b *testing.B) {
	b.Helper()
	for _, s := range m {
		server := natsServer{monitoring: s.monitoring}
		await(b, func() bool {
			others, _ := server.routes()
			return others == len(m)-1 && server.ask("healthz", new(any)) == nil
		}, "the server on port %d has routes to all others", s.client)
	}
}

// connectPairs connects dataloaders and embedding workers to servers in turn, most of
// them to different ones, and returns a function that sends b.N batches and waits for the answers.
func connectPairs(b *testing.B, servers mesh) func(*testing.B) []time.Duration {
	b.Helper()
	open := func(i int) *natsgo.Conn {
		connection, err := natsgo.Connect(fmt.Sprintf("nats://127.0.0.1:%d", servers[i%len(servers)].client), natsgo.Timeout(patience))
		require.NoError(b, err)
		b.Cleanup(connection.Close)
		return connection
	}
	loaders := make([]*natsgo.Conn, loadPairs)
	for i := range loaders {
		worker := open(i + 1)
		_, err := worker.Subscribe(subject(i), func(m *natsgo.Msg) { _ = m.Respond([]byte("kept")) })
		require.NoError(b, err)
		require.NoError(b, worker.Flush())
		loaders[i] = open(i)
	}
	// A route knows of a subscription some time after its server.
	for i, loader := range loaders {
		await(b, func() bool {
			_, err := loader.Request(subject(i), nil, time.Second)
			return err == nil
		}, "an answer about %s", subject(i))
	}
	return func(b *testing.B) []time.Duration {
		batch := make([]byte, loadBatch)
		latencies := make([]time.Duration, b.N)
		var next atomic.Int64
		var work errgroup.Group
		for i, loader := range loaders {
			work.Go(func() error {
				for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
					sent := time.Now()
					if _, err := loader.Request(subject(i), batch, patience); err != nil {
						return fmt.Errorf("batch %d: %w", n, err)
					}
					latencies[n-1] = time.Since(sent)
				}
				return nil
			})
		}
		require.NoError(b, work.Wait())
		return latencies
	}
}

func subject(i int) string { return fmt.Sprintf("EmbeddingWorkerService.forward_batched.%d", i) }

// cpu returns the processor time that all servers have used.
func (m mesh) cpu(b *testing.B) time.Duration {
	b.Helper()
	var seconds float64
	for _, stat := range m.stats(b) {
		seconds += stat.CPUTime()
	}
	return time.Duration(seconds * float64(time.Second))
}

// resident returns the memory, in bytes, that all servers hold.
func (m mesh) resident(b *testing.B) int {
	b.Helper()
	var bytes int
	for _, stat := range m.stats(b) {
		bytes += stat.ResidentMemory()
	}
	return bytes
}

func (m mesh) stats(b *testing.B) []procfs.ProcStat {
	b.Helper()
	var all []procfs.ProcStat
	for _, s := range m {
		found, err := procfs.NewProc(s.process.Pid)
		require.NoError(b, err)
		stat, err := found.Stat()
		require.NoError(b, err)
		all = append(all, stat)
	}
	return all
}
