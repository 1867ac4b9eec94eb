//go:build !linux

package node

import (
	"context"
	"log/slog"
)

// Run fails: see [Missing].
func Run(context.Context, Options, *slog.Logger) error { return Missing() }

// Boot fails: see [Missing].
func Boot(string, *slog.Logger) error { return Missing() }

// CleanUp finds nothing.
func CleanUp(string) error { return nil }

// Remains finds nothing.
func Remains(string) ([]string, error) { return nil, nil }

// PeakMemory fails: see [Missing].
func PeakMemory(string) (int64, error) { return 0, Missing() }
