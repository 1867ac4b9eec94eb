package provider

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
)

// logTimeout bounds how long a message may hold up the operation that it is about.
const logTimeout = 5 * time.Second

// A Logger sends messages to the engine's log. Messages are a courtesy: what cannot be sent is dropped, and never fails
// an operation. The zero Logger drops everything until it is attached. It is safe for concurrent use.
type Logger struct {
	engine atomic.Pointer[provider.HostClient]
}

// Attach directs the logger to the engine at address, a host and port.
func (l *Logger) Attach(address string) error {
	engine, err := provider.NewHostClient(address)
	if err != nil {
		return fmt.Errorf("connecting to the engine at %s: %w", address, err)
	}
	return l.replace(engine)
}

// Close ends the connection to the engine.
func (l *Logger) Close() error { return l.replace(nil) }

func (l *Logger) replace(engine *provider.HostClient) error {
	if old := l.engine.Swap(engine); old != nil {
		return old.Close()
	}
	return nil
}

// Status shows message as the progress of a resource: on its line, until the next one replaces it.
func (l *Logger) Status(ctx context.Context, urn resource.URN, message string) {
	if engine := l.engine.Load(); engine != nil {
		ctx, cancel := context.WithTimeout(ctx, logTimeout)
		defer cancel()
		_ = engine.LogStatus(ctx, diag.Info, urn, message)
	}
}

// Warn adds a warning about a resource to the diagnostics of the update.
func (l *Logger) Warn(ctx context.Context, urn resource.URN, message string) {
	if engine := l.engine.Load(); engine != nil {
		ctx, cancel := context.WithTimeout(ctx, logTimeout)
		defer cancel()
		_ = engine.Log(ctx, diag.Warning, urn, message)
	}
}
