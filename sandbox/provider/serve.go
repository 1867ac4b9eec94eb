// Package provider serves Pulumi providers from this process to an engine that runs in another one.
//
// The engine finds them through the environment variable PULUMI_DEBUG_PROVIDERS, which holds NAME:PORT pairs separated
// by commas, and connects to the port on loopback instead of starting a plugin.
package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Serve serves a provider on a port of 127.0.0.1 to each engine that connects, until ctx ends, and closes it when the
// connection ends. The engine opens a connection for each provider resource of a stack: a stack with two providers of a
// package, or one whose provider is being replaced, has two connections at once, configured differently.
func Serve(ctx context.Context, newProvider func() plugin.GrpcProvider) (port int, err error) {
	var server *grpc.Server
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(srv *grpc.Server) error {
			server = srv
			service := perConnectionService()
			srv.RegisterService(&service, pulumirpc.UnimplementedResourceProviderServer{})
			return nil
		},
		Options: []grpc.ServerOption{grpc.StatsHandler(connections(newProvider))},
	})
	if err != nil {
		return 0, fmt.Errorf("serving a provider on loopback: %w", err)
	}
	context.AfterFunc(ctx, func() { server.Stop() })
	return handle.Port, nil
}

// connection is a provider and its gRPC service for one engine. The service lives as long as the
// connection, because it stores the result of the handshake.
type connection struct {
	provider plugin.GrpcProvider
	service  pulumirpc.ResourceProviderServer
}

type connectionKey struct{}

// connections gives each connection its provider. The context of a connection is the parent of the
// contexts of its calls.
type connections func() plugin.GrpcProvider

func (c connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	p := c()
	return context.WithValue(ctx, connectionKey{}, connection{
		provider: p,
		service:  plugin.NewProviderServer(p),
	})
}

func (c connections) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); ended {
		// The engine is gone, so no caller can receive the error.
		_ = ctx.Value(connectionKey{}).(connection).provider.Close()
	}
}

func (c connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c connections) HandleRPC(context.Context, stats.RPCStats) {}

// perConnectionService describes the provider service with every method
// answered by the provider of the connection that the call came in on. No provider has streams.
func perConnectionService() grpc.ServiceDesc {
	service := pulumirpc.ResourceProvider_ServiceDesc
	service.Methods = slices.Clone(service.Methods)
	for i, method := range service.Methods {
		service.Methods[i].Handler = func(
			_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			resp, err := method.Handler(ctx.Value(connectionKey{}).(connection).service, ctx, decode, interceptor)
			// The SDK's server sends detailed diffs without the flag that makes the engine read them.
			if diff, ok := resp.(*pulumirpc.DiffResponse); ok && diff != nil {
				diff.HasDetailedDiff = len(diff.DetailedDiff) > 0
			}
			return resp, err
		}
	}
	return service
}
