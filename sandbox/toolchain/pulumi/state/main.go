// Command state serves the part of the Pulumi Cloud API that one Pulumi CLI on
// this machine needs to keep its state: `pulumi login http://127.0.0.1:PORT`.
//
// Pulumi's file backend writes the whole state at each step, which is quadratic
// in the number of resources. The protocol of the Pulumi Cloud has a journal
// instead: the CLI sends what each step changed, and goes on once it is stored.
// This server stores the journal and makes it into a state with Pulumi's own
// code, so that a command that is killed leaves every step that it has made.
//
//	state --dir DIR
//
// It prints its address, answers to the access token in PULUMI_ACCESS_TOKEN
// only, and ends when its standard input closes, which happens when its parent process ends.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "state:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "", "the `folder` of the state")
	flag.Parse()
	token := os.Getenv("PULUMI_ACCESS_TOKEN")
	if *dir == "" || token == "" || flag.NArg() != 0 {
		flag.Usage()
		return errors.New("--dir and PULUMI_ACCESS_TOKEN are required")
	}
	unlock, err := lock(*dir)
	if err != nil {
		return err
	}
	defer unlock()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())

	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	server := &http.Server{
		Handler:           newService(*dir, token).handler(),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { ended <- server.Serve(listener) }()
	return <-ended
}

// lock waits for an earlier server, which may still be writing although its parent process has
// ended. The lock ends with this process.
func lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
