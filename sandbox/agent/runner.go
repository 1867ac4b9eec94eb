package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
	// steady is how long a program must have run for its next failure to count
	// as the first.
	steady = time.Minute
)

// runner keeps the program of one container running.
type runner struct {
	options   Options
	client    kubernetes.Interface
	pod       *corev1.Pod
	container corev1.Container
	program   Program
	served    *served
	logger    *slog.Logger
}

// run returns when ctx has ended and the program too.
func (r *runner) run(ctx context.Context) {
	output, err := os.OpenFile(filepath.Join(r.options.logs(), logName(r.pod, r.container.Name)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		r.logger.Error("cannot run the program", "error", err)
		return
	}
	defer func() { _ = output.Close() }()
	// The program's own log says it too, because a user who misses the program looks there first.
	report := func(message string, err error) {
		r.logger.Error(message, "error", err)
		fmt.Fprintf(output, "agent: %s %s: %v\n", time.Now().Format(time.RFC3339), message, err)
	}

	env, err := environment(r.pod, r.container)
	if err != nil {
		// It is as wrong the next time.
		report("cannot run the program", err)
		return
	}
	credentials := &credentials{client: r.client, pod: r.pod, dir: filepath.Join(r.options.credentials(), string(r.pod.UID), r.container.Name)}
	defer func() { _ = os.RemoveAll(credentials.dir) }()
	if err := credentials.writeKubeconfig(r.options.Config); err != nil {
		report("cannot run the program", err)
		return
	}
	// It cannot start the program without a token.
	var renew time.Time
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		if renew, err = credentials.writeToken(ctx); err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		report("waiting for a token", err)
		if !sleep(ctx, backoff) {
			return
		}
	}
	at := host{dir: credentials.dir, kubeconfig: credentials.kubeconfig(), mounts: r.folders(credentials.dir)}
	at.mounts[accountFolder] = credentials.dir
	if r.program.Serves {
		if at.ports, err = r.served.take(r.pod, r.container); err != nil {
			report("cannot run the program", err)
			return
		}
		defer r.served.release(r.pod)
	}
	if err := r.mount(ctx, at); err != nil {
		report("cannot run the program", err)
		return
	}
	go r.keepMounted(ctx, at, func(err error) { report("cannot mount files", err) })
	if r.program.Serves {
		go r.probe(ctx, at.ports, func(err error) { report("cannot say whether the program is ready", err) })
	}
	env = append(env, apiServerEnv(r.options.Config.Host)...)
	args := r.program.arguments(r.pod, r.container, env, at)
	keepCtx, stopKeeping := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		credentials.keep(keepCtx, renew, func(err error) { report("cannot renew the token", err) })
	}()
	defer func() { stopKeeping(); <-kept }()

	backoff := firstBackoff
	for restarts := 1; ; restarts++ {
		started := time.Now()
		err := r.execute(ctx, args, env, output)
		if ctx.Err() != nil {
			r.logger.Info("program was stopped with its pod or the agent", "state", fmt.Sprint(err))
			return
		}
		if time.Since(started) > steady {
			backoff = firstBackoff
		}
		report(fmt.Sprintf("program ended, restarting it in %s (restart %d)", backoff, restarts), err)
		if !sleep(ctx, backoff) {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// execute runs the program once. When ctx ends it asks the program to end, and
// kills it if it does not.
func (r *runner) execute(ctx context.Context, args, env []string, output *os.File) error {
	// The kernel kills the process with the thread that started it, so that a killed agent leaves no program
	// behind. The thread therefore waits here.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, r.program.Binary, args...)
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
	r.logger.Info("program started", "binary", r.program.Binary, "args", args, "pid", cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return fmt.Errorf("%s", cmd.ProcessState)
}
