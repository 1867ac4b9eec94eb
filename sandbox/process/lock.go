package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock takes the lock on the file at path, and waits for its holder until ctx ends. Lock creates the
// file if needed, and the holder may remove it. The lock ends with unlock, or with this process.
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
	// The last holder may have removed the file after Lock opened it. A lock on a removed file
	// excludes no other process.
	locked, err := file.Stat()
	current, removed := os.Stat(path)
	if err != nil || removed != nil || !os.SameFile(locked, current) {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
