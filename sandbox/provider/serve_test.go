package provider

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"persia/internal/testkit"
)

// fake is a provider whose version counts how many were made before it.
type fake struct {
	Base
	closed func()
}

func numbered(number uint64, closed func()) *fake {
	return &fake{Base{Version: fmt.Sprint(number, ".0.0")}, closed}
}

func (f *fake) Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error) {
	return plugin.DiffResponse{DetailedDiff: map[string]plugin.PropertyDiff{"spec": {Kind: plugin.DiffUpdate}}}, nil
}

func (f *fake) Close() error {
	f.closed()
	return nil
}

func connect(t *testing.T, port int) pulumirpc.ResourceProviderClient {
	t.Helper()
	conn := testkit.Must(grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return pulumirpc.NewResourceProviderClient(conn)
}

func versionOf(t *testing.T, client pulumirpc.ResourceProviderClient) string {
	t.Helper()
	return testkit.Must(client.GetPluginInfo(t.Context(), &emptypb.Empty{}))(t).Version
}

func TestServeGivesEachConnectionItsProvider(t *testing.T) {
	var closed sync.WaitGroup
	var made uint64
	ctx, end := context.WithCancel(t.Context())
	port, err := Serve(ctx, func() plugin.GrpcProvider {
		made++
		closed.Add(1)
		return numbered(made, closed.Done)
	})
	require.NoError(t, err)

	first, second := connect(t, port), connect(t, port)
	assert.Equal(t, "1.0.0", versionOf(t, first))
	assert.Equal(t, "2.0.0", versionOf(t, second))
	assert.Equal(t, "1.0.0", versionOf(t, first))

	end()
	closed.Wait()
}

// serving serves one provider.
func serving(t *testing.T, p *fake) int {
	t.Helper()
	return testkit.Must(Serve(t.Context(), func() plugin.GrpcProvider { return p }))(t)
}

func TestDetailedDiffIsDeclared(t *testing.T) {
	resp, err := connect(t, serving(t, numbered(1, func() {}))).Diff(t.Context(), &pulumirpc.DiffRequest{
		Urn: "urn:pulumi:dev::persia::kubernetes:core/v1:ConfigMap::a",
	})
	require.NoError(t, err)
	assert.True(t, resp.HasDetailedDiff)
}

// engine records the messages that it is sent.
type engine struct {
	pulumirpc.UnimplementedEngineServer
	mu       sync.Mutex
	messages []string
}

func (e *engine) Log(_ context.Context, req *pulumirpc.LogRequest) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.messages = append(e.messages, fmt.Sprintf("%s %v %s %s", req.Severity, req.Ephemeral, req.Urn, req.Message))
	return &emptypb.Empty{}, nil
}

func TestLoggerReachesTheEngineThatAttached(t *testing.T) {
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	recorded := &engine{}
	engineServer := grpc.NewServer()
	pulumirpc.RegisterEngineServer(engineServer, recorded)
	go func() { _ = engineServer.Serve(listener) }()
	defer engineServer.Stop()

	p := numbered(1, func() {})
	log := &p.Log
	log.Warn(t.Context(), "urn", "dropped before there is an engine")
	testkit.Must(connect(t, serving(t, p)).Attach(t.Context(), &pulumirpc.PluginAttach{Address: listener.Addr().String()}))(t)

	log.Status(t.Context(), resource.URN("urn"), "120/240 ready")
	log.Warn(t.Context(), resource.URN("urn"), "deprecated")
	assert.Equal(t, []string{"INFO true urn 120/240 ready", "WARNING false urn deprecated"}, recorded.messages)

	require.NoError(t, log.Close())
	log.Warn(t.Context(), "urn", "dropped after it")
	assert.Len(t, recorded.messages, 2)
}

func TestLargeMessagesPass(t *testing.T) {
	_, err := connect(t, serving(t, numbered(1, func() {}))).Attach(t.Context(), &pulumirpc.PluginAttach{
		Address: strings.Repeat("a", 8<<20), // twice what gRPC takes by default
	})
	assert.NoError(t, err)
}
