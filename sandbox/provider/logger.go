package provider

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// logTimeout bounds how long a message may hold up the operation that it is about.
const logTimeout = 5 * time.Second

// A Logger sends messages to the engine's log. Messages are a courtesy: what cannot be sent is dropped, and never fails
// an operation. The zero Logger drops everything until it is attached. It is safe for concurrent use.
type Logger struct {
	mu   sync.Mutex
	conn *grpc.ClientConn
}

// Attach directs the logger to the engine at address, a host and port.
func (l *Logger) Attach(address string) error {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		return fmt.Errorf("connecting to the engine at %s: %w", address, err)
	}
	return l.replace(conn)
}

// Close ends the connection to the engine.
func (l *Logger) Close() error { return l.replace(nil) }

func (l *Logger) replace(conn *grpc.ClientConn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.conn
	l.conn = conn
	if old == nil {
		return nil
	}
	return old.Close()
}

// Status shows message as the progress of a resource: on its line, until the next one replaces it.
func (l *Logger) Status(ctx context.Context, urn resource.URN, message string) {
	l.send(ctx, &pulumirpc.LogRequest{
		Severity: pulumirpc.LogSeverity_INFO, Urn: string(urn), Message: message, Ephemeral: true,
	})
}

// Warn adds a warning about a resource to the diagnostics of the update.
func (l *Logger) Warn(ctx context.Context, urn resource.URN, message string) {
	l.send(ctx, &pulumirpc.LogRequest{
		Severity: pulumirpc.LogSeverity_WARNING, Urn: string(urn), Message: message,
	})
}

func (l *Logger) send(ctx context.Context, message *pulumirpc.LogRequest) {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	_, _ = pulumirpc.NewEngineClient(conn).Log(ctx, message)
}
