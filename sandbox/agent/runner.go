package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
	// steady is how long a program must have run for its next failure to count as the first.
	steady = time.Minute
)

// runner keeps the program of one container running.
type runner struct {
	options   Options
	client    kubernetes.Interface
	pod       *corev1.Pod
	container corev1.Container
	program   program
	served    *sync.Map
	logger    *slog.Logger
}

// run runs the program, again and again, until ctx ends.
func (r *runner) run(ctx context.Context) {
	name := fmt.Sprintf("%s_%s_%s.log", r.pod.Namespace, r.pod.Name, r.container.Name)
	output, err := os.OpenFile(filepath.Join(r.options.logs(), name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		r.logger.Error("cannot run the program", "error", err)
		return
	}
	defer func() { _ = output.Close() }()
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		started := time.Now()
		err := r.runOnce(ctx, output)
		if ctx.Err() != nil {
			r.logger.Info("program was stopped with its pod or the agent", "state", fmt.Sprint(err))
			return
		}
		if time.Since(started) > steady {
			backoff = firstBackoff
		}
		r.report(output, fmt.Sprintf("program ended, restarting it in %s", backoff), err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
	}
}

// report says what failed in the program's own log too, because a user who misses the program looks there first.
func (r *runner) report(output io.Writer, message string, err error) {
	r.logger.Error(message, "error", err)
	fmt.Fprintf(output, "agent: %s %s: %v\n", time.Now().Format(time.RFC3339), message, err)
}

// runOnce prepares what a kubelet prepares for a container, and runs the program once.
func (r *runner) runOnce(ctx context.Context, output *os.File) error {
	env, err := environment(r.pod, r.container)
	if err != nil {
		return err
	}
	env = append(env, apiServerEnv(r.options.Config.Host)...)
	dir := filepath.Join(r.options.credentials(), string(r.pod.UID), r.container.Name)
	defer func() { _ = os.RemoveAll(dir) }()
	at := host{mounts: r.folders(dir)}
	at.mounts[accountFolder] = dir
	if at.kubeconfig, err = r.writeCredentials(ctx, dir); err != nil {
		return err
	}
	if r.program.serves {
		if at.ports, err = freePorts(r.container); err != nil {
			return err
		}
		r.served.Store(r.pod.UID, at.ports)
		defer r.served.Delete(r.pod.UID)
	}
	if err := r.mount(ctx, at); err != nil {
		return err
	}
	background, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer func() { stop(); helpers.Wait() }()
	helpers.Go(func() { r.keepMounted(background, at, output) })
	if r.program.serves {
		helpers.Go(func() { r.probe(background, at.ports) })
	}
	return r.execute(ctx, r.program.arguments(r.pod, r.container, env, at), env, output)
}

// execute runs the program once. When ctx ends it asks the program to end, and kills it if it does not.
func (r *runner) execute(ctx context.Context, args, env []string, output *os.File) error {
	// The kernel kills the process with the thread that started it, so that a killed agent leaves no program
	// behind. The thread therefore waits here.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, r.program.binary, args...)
	cmd.Dir = r.options.Dir
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + r.pod.Name}, env...)
	cmd.Stdout, cmd.Stderr = output, output
	// Not in the agent's process group: who interrupts the agent at a terminal
	// leaves it to the agent to end the programs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return err
	}
	r.logger.Info("program started", "binary", r.program.binary, "args", args, "pid", cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return fmt.Errorf("%s", cmd.ProcessState)
}
