package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	healthInterval = 100 * time.Millisecond
	healthTimeout  = 3 * time.Second
	// restartInterval is the least time between two attempts to start what died during the start. The controller
	// manager gives up when the API server is not there within ten seconds, as on a busy machine.
	restartInterval = 2 * time.Second
)

// errDead says that components do not run.
type errDead []string

func (e errDead) Error() string { return strings.Join(e, ", ") + ": not running" }

// healthy returns nil if every component runs and the API server and the controllers work.
func (c *Cluster) healthy(ctx context.Context) error {
	dead, err := c.dead()
	if err != nil {
		return err
	}
	if len(dead) != 0 {
		return errDead(dead)
	}
	config, err := c.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	// Its controllers make it, and no pod can be created before.
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	return nil
}

// awaitHealth waits until the control plane is healthy, and starts what dies meanwhile again.
func (c *Cluster) awaitHealth(ctx context.Context) error {
	lastStart := time.Now()
	var dead errDead
	var last error
	err := wait.PollUntilContextCancel(ctx, healthInterval, true, func(ctx context.Context) (bool, error) {
		dead, last = nil, c.healthy(ctx)
		if errors.As(last, &dead) && time.Since(lastStart) > restartInterval {
			lastStart = time.Now()
			err := c.startDead(ctx)
			last = errors.Join(last, err)
			return false, err
		}
		return last == nil, nil
	})
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w: %w\n%s", context.Cause(ctx), last, c.lastWords(dead))
	}
	return err
}
