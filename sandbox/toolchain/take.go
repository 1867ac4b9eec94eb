package toolchain

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"persia/sandbox/process"
)

// patience is how long a server may send nothing.
const patience = 30 * time.Second

// Take copies programs that are missing or out of date in binDir from an archive, which is a file or a
// URL. It takes only what is recorded in the module root, and writes to progress why it does not take
// a program. [Build] compiles the rest.
func Take(ctx context.Context, archive, moduleRoot, binDir string, progress io.Writer) error {
	b, err := newBuilder(ctx, moduleRoot, binDir)
	if err != nil {
		return err
	}
	return b.takeFrom(ctx, archived, archive, progress)
}

func (b *builder) takeFrom(ctx context.Context, tools []tool, archive string, progress io.Writer) error {
	if stale, err := b.stale(tools); err != nil || len(stale) == 0 {
		return err
	}
	if err := os.MkdirAll(b.binDir, 0o755); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	unlock, err := process.Lock(ctx, filepath.Join(b.binDir, ".lock"))
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	defer unlock()
	wanted, err := b.wanted(tools, progress)
	if err != nil || len(wanted) == 0 {
		return err
	}
	err = b.takeAll(ctx, wanted, archive, progress)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		fmt.Fprintf(progress, "toolchain: the archive %s: %v\n", archive, err)
	}
	for _, t := range tools {
		if _, missing := wanted[t.name]; missing {
			fmt.Fprintf(progress, "toolchain: %s is not taken from the archive\n", t.name)
		}
	}
	return nil
}

// wanted returns the programs to take, by name.
func (b *builder) wanted(tools []tool, progress io.Writer) (map[string]program, error) {
	stale, err := b.stale(tools)
	if err != nil || len(stale) == 0 {
		return nil, err
	}
	recorded, err := readRecord(b.moduleRoot)
	if err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	wanted := map[string]program{}
	if err := recorded.fits(b); err != nil {
		fmt.Fprintf(progress, "toolchain: nothing is taken from the archive: %v\n", err)
		return nil, nil
	}
	for _, t := range tools {
		if !slices.Contains(stale, t.name) {
			continue
		}
		p, err := recorded.find(t, b)
		if err != nil {
			fmt.Fprintf(progress, "toolchain: %s is not taken from the archive: %v\n", t.name, err)
			continue
		}
		wanted[t.name] = p
	}
	return wanted, nil
}

// takeAll takes the wanted programs, and removes those from wanted that it has taken.
func (b *builder) takeAll(ctx context.Context, wanted map[string]program, archive string, progress io.Writer) error {
	opened, err := b.openArchive(ctx, archive)
	if err != nil {
		return err
	}
	defer opened.Close()
	uncompressed, err := gzip.NewReader(opened)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(uncompressed); len(wanted) > 0; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p, ok := wanted[entry.Name]
		if !ok {
			continue
		}
		switch err := b.takeProgram(p, entry.Size, entries); {
		case errors.Is(err, errOther):
			fmt.Fprintf(progress, "toolchain: %s: %v\n", p.Name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", p.Name, err)
		default:
			delete(wanted, p.Name)
			fmt.Fprintf(progress, "toolchain: %s %s taken from the archive\n", p.Name, p.Version)
		}
	}
	return nil
}

// errOther is the error of a program that is not the recorded one.
var errOther = errors.New("the program in the archive is not the recorded one")

// takeProgram leaves either the recorded program and its stamp, or what was there before.
func (b *builder) takeProgram(p program, size int64, content io.Reader) error {
	if size != p.Size {
		return fmt.Errorf("%w: it has %d bytes, not %d", errOther, size, p.Size)
	}
	binary := filepath.Join(b.binDir, p.Name)
	pending, err := renameio.NewPendingFile(binary, renameio.WithPermissions(0o755))
	if err != nil {
		return err
	}
	defer func() { _ = pending.Cleanup() }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(pending, sum), content); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("%w: its SHA-256 is %s, not %s", errOther, got, p.SHA256)
	}
	if err := os.Remove(stampFile(binary)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return renameio.WriteFile(stampFile(binary), []byte(p.Stamp), 0o644)
}

// openArchive opens a file or a URL.
func (b *builder) openArchive(ctx context.Context, archive string) (io.ReadCloser, error) {
	if !strings.HasPrefix(archive, "https://") && !strings.HasPrefix(archive, "http://") {
		return os.Open(archive)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	body := &patientBody{ctx: ctx, patience: b.patience, cancel: cancel}
	body.silence = time.AfterFunc(b.patience, func() {
		cancel(fmt.Errorf("the server sent nothing for %s", b.patience))
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, archive, nil)
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		err = body.explain(err)
		return nil, errors.Join(err, body.Close())
	}
	body.ReadCloser = response.Body
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(errors.New(response.Status), body.Close())
	}
	return body, nil
}

// patientBody is the body of a response that ends when nothing comes for some time.
type patientBody struct {
	io.ReadCloser // nil before the response

	ctx      context.Context
	patience time.Duration
	silence  *time.Timer
	cancel   context.CancelCauseFunc
}

func (p *patientBody) Read(buffer []byte) (int, error) {
	n, err := p.ReadCloser.Read(buffer)
	p.silence.Reset(p.patience)
	return n, p.explain(err)
}

// explain returns why the context has ended, if it has.
func (p *patientBody) explain(err error) error {
	if err != nil && p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	return err
}

func (p *patientBody) Close() error {
	p.silence.Stop()
	defer p.cancel(nil)
	if p.ReadCloser == nil {
		return nil
	}
	return p.ReadCloser.Close()
}
