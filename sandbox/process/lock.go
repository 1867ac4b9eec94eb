package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock takes the lock that the file at path stands for, waiting for whoever
// holds it until ctx ends. The file is made if need be, and may be removed by
// the holder. The lock ends with unlock, or with this process.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	ticker := time.NewTicker(5 * pollInterval)
	defer ticker.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if file != nil {
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s is held by another process: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// tryLock returns no file when another process holds the lock.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return nil, nil
		}
		return nil, err
	}
	// Its last holder may have removed the file after it was opened here; then
	// this lock excludes nobody.
	locked, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	if current, err := os.Stat(path); err != nil || !os.SameFile(locked, current) {
		_ = file.Close()
		return nil, nil
	}
	return file, nil
}
