package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/gcp"
	"persia/internal/status"
	"persia/sandbox/process"
)

// ErrNotRunning is the error of commands that need a sandbox that is up.
var ErrNotRunning = errors.New("the sandbox does not run")

// Status prints the nodes by pool, the pods by workload, the ends of training jobs, the
// background programs that do not run, and how to use kubectl.
func (s *Sandbox) Status(ctx context.Context, out io.Writer) error {
	if !s.cluster.Running(ctx) {
		return fmt.Errorf("%w: start it with `make up %s`", ErrNotRunning, s.Variables())
	}
	config, client, err := s.cluster.Access()
	if err != nil {
		return err
	}
	nodes, nodesErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	pods, podsErr := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err := errors.Join(nodesErr, podsErr); err != nil {
		return err
	}
	printPods(out, nodes.Items, pods.Items)
	report, err := status.Read(ctx, config, time.Now())
	if err != nil {
		return err
	}
	report.Print(out)
	s.printEnded(out)
	fmt.Fprintf(out, "\nAPI server   %s\nlook around  KUBECONFIG=$(make -s kubeconfig %s) kubectl get pods -A\ntake down    make down %[2]s\n",
		config.Host, s.Variables())
	return nil
}

// printEnded prints which background programs have ended. Only the next up starts them again.
func (s *Sandbox) printEnded(out io.Writer) {
	programs := map[string]process.Background{"agent": s.agent()}
	if s.options.Real.Pool != "" {
		programs["real node"] = process.Background(s.path("node"))
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if !programs[name].Running() {
			fmt.Fprintf(out, "\nthe %s does not run: see %s, and start it again with `make up %s`\n",
				name, programs[name].Log(), s.Variables())
		}
	}
}

// Variables returns the arguments of make that select the stack.
func (s *Sandbox) Variables() string {
	stack := "STACK=" + s.options.Stack
	if s.options.Stacks == s.options.Project {
		return stack
	}
	folder, err := filepath.Rel(s.options.Project, s.options.Stacks)
	if err != nil {
		folder = s.options.Stacks
	}
	if strings.Contains(folder, " ") {
		folder = "'" + folder + "'"
	}
	return "STACKS=" + folder + " " + stack
}

func printPods(out io.Writer, nodes []corev1.Node, pods []corev1.Pod) {
	poolOfNode := map[string]string{}
	for _, node := range nodes {
		poolOfNode[node.Name] = node.Labels[gcp.LabelNodePool]
	}
	ready, all, pools := map[string]int{}, map[string]int{}, map[string][]string{}
	for _, pod := range pods {
		name := pod.Namespace + "\t" + ownerOf(pod)
		all[name]++
		if status.Ready(pod) {
			ready[name]++
		}
		if pool := poolOfNode[pod.Spec.NodeName]; pool != "" && !slices.Contains(pools[name], pool) {
			pools[name] = append(pools[name], pool)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nNAMESPACE\tWORKLOAD\tPODS READY\tNODE POOL")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		slices.Sort(pools[name])
		fmt.Fprintf(table, "%s\t%d/%d\t%s\n", name, ready[name], all[name], strings.Join(pools[name], ", "))
	}
	_ = table.Flush()
}

// ownerOf returns the kind and name of a pod's workload. For a pod of a ReplicaSet, it is
// the Deployment, whose name is the ReplicaSet's without the hash.
func ownerOf(pod corev1.Pod) string {
	owner := metav1.GetControllerOf(&pod)
	if owner == nil {
		return "Pod " + pod.Name
	}
	if hash := pod.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		return "Deployment " + strings.TrimSuffix(owner.Name, "-"+hash)
	}
	return owner.Kind + " " + owner.Name
}
