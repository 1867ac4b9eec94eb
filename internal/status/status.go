// Package status reports what the training jobs of a cluster do, and why they wait. It only reads the cluster.
package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/config"
	"persia/gcp"
)

// Report is the state of a cluster's jobs at a time.
type Report struct {
	Jobs []Job
	// NATS are the servers of NATS that do not run, with why, and Controllers the Deployments of stacks that do not.
	NATS, Controllers []Wait
	pools             []nodePool
}

// Job is a training job, with what it waits for.
type Job struct {
	Training
	// restCost is what the hours that were not useful have cost, or "".
	restCost string
	Waits    []Wait
}

// Read reads the state of all jobs of a cluster at a time.
func Read(ctx context.Context, cluster *rest.Config, now time.Time) (Report, error) {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return Report{}, err
	}
	kinds, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return Report{}, err
	}
	return read(ctx, client, kinds, now)
}

// read is [Read] with clients. The client kinds is for the kinds of Kueue and of GKE.
func read(ctx context.Context, client kubernetes.Interface, kinds dynamic.Interface, now time.Time) (Report, error) {
	trainings, err := List(ctx, client)
	if err != nil {
		return Report{}, err
	}
	inKueue, err := records(ctx, kinds, workloads)
	if err != nil {
		return Report{}, err
	}
	var ofGKE []record
	if slices.ContainsFunc(trainings, asksForNodes) {
		if ofGKE, err = records(ctx, kinds, requests); err != nil {
			return Report{}, err
		}
	}
	queues, asked := queued(inKueue, now), requested(ofGKE)
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Report{}, fmt.Errorf("read the nodes: %w", err)
	}
	report := Report{pools: poolsOf(nodes.Items, trainings)}
	for _, training := range trainings {
		job, id := Job{Training: training}, training.Namespace+"/"+training.Job
		if !asksForNodes(training) {
			delete(asked, id) // the request stays when the nodes are there
		}
		ofPods, err := waits(ctx, client, training.Namespace, training.Pods, training.owners)
		if err != nil {
			return Report{}, err
		}
		job.Waits = slices.Concat(queues[id], asked[id], ofPods)
		job.restCost = job.cost(nodes.Items)
		report.Jobs = append(report.Jobs, job)
	}
	servers, err := client.CoreV1().Pods(config.NATSNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=nats"})
	if err != nil {
		return Report{}, err
	}
	if report.NATS, err = waits(ctx, client, config.NATSNamespace, servers.Items, nil); err != nil {
		return Report{}, err
	}
	missing, err := missingNATS(ctx, kinds, trainings)
	if err != nil {
		return Report{}, err
	}
	report.NATS = append(missing, report.NATS...)
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=persia"}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, ours)
	if err != nil {
		return Report{}, fmt.Errorf("read the controllers: %w", err)
	}
	report.Controllers = idle(deployments.Items)
	return report, nil
}

// missingNATS returns the NATS clusters that pods of trainings connect to, and that are not there.
func missingNATS(ctx context.Context, kinds dynamic.Interface, trainings []Training) ([]Wait, error) {
	wanted := map[string]bool{}
	for _, training := range trainings {
		wanted[training.nats] = true
	}
	delete(wanted, "")
	there, err := records(ctx, kinds, natsClusters)
	for _, cluster := range there {
		delete(wanted, cluster.Name)
	}
	var missing []Wait
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		missing = append(missing, Wait{Cause: "deleted", Pod: name, Says: "the NatsCluster is not there", Next: "pulumi up --refresh"})
	}
	return missing, err
}

// asksForNodes reports whether pods of a job wait for nodes that the job has requested.
func asksForNodes(training Training) bool {
	return slices.ContainsFunc(training.Pods, func(pod corev1.Pod) bool { return pod.Annotations[gcp.AnnotationRequest] != "" && !Ready(pod) })
}

// waits returns the reasons that pods do not run, or that owners do not have them, the most frequent first.
func waits(ctx context.Context, client kubernetes.Interface, namespace string, pods []corev1.Pod, owners []owner) ([]Wait, error) {
	lacks := func(owner owner) bool { return owner.there < owner.wanted }
	if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !Ready(pod) }) && !slices.ContainsFunc(owners, lacks) {
		return nil, nil
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", namespace, err)
	}
	var all []Wait
	for _, owner := range owners {
		if lacks(owner) {
			all = append(all, owner.explain(events.Items))
		}
	}
	for _, pod := range pods {
		wait, found := explain(pod, events.Items)
		if !found {
			continue
		}
		same := slices.IndexFunc(all, func(other Wait) bool { return other.Cause == wait.Cause && other.Says == wait.Says })
		if same < 0 {
			all = append(all, wait)
		} else {
			all[same].More++
		}
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(b.More, a.More) })
	return all, nil
}

// cost returns what the hours of a job that were not useful have cost on its nodes, or "".
func (j Job) cost(nodes []corev1.Node) string {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(node corev1.Node) bool {
		return !slices.ContainsFunc(j.Pods, func(pod corev1.Pod) bool {
			name := pod.Labels["app.kubernetes.io/name"]
			return pod.Spec.NodeName == node.Name && name != config.Completion && name != config.MetricsGateway
		})
	})
	if len(nodes) == 0 || j.Answer == nil {
		return ""
	}
	return costOf(poolsOf(nodes, nil), (j.Answer.All()-j.Answer.Useful())/3600)
}

// Print shows the report.
func (r Report) Print(out io.Writer) {
	printPools(out, r.pools)
	if len(r.Jobs) == 0 {
		fmt.Fprintf(out, "\n%s\n", None)
	}
	for _, job := range r.Jobs {
		fmt.Fprintf(out, "\njob %s: %s\n", job.Job, job.State)
		if job.Trouble != "" {
			fmt.Fprintf(out, "  %s\n", job.Trouble)
		}
		if job.Answer != nil {
			job.printAnswer(out)
		}
		printWaits(out, job.Waits)
	}
	if len(r.NATS) > 0 {
		fmt.Fprintf(out, "\nNATS\n")
		printWaits(out, r.NATS)
	}
	if len(r.Controllers) > 0 {
		fmt.Fprintf(out, "\nCONTROLLERS\n")
		printWaits(out, r.Controllers)
	}
}

// printAnswer shows what the coordinator says of checkpoints, and where the time went.
func (j Job) printAnswer(out io.Writer) {
	if c := j.Answer.Checkpoint; c != nil {
		fmt.Fprintf(out, "  last checkpoint: %s, %s ago\n", c.Path, time.Duration(math.Round(c.Age))*time.Second)
	}
	if j.Answer.All() == 0 {
		return
	}
	fmt.Fprintf(out, "  time: %s\n", j.Answer.Account)
	if j.restCost != "" {
		fmt.Fprintf(out, "    the rest has cost %s %s on its nodes\n", j.restCost, gcp.PriceCurrency)
	}
	if j.Predicted != "" {
		fmt.Fprintf(out, "    the plan expected: useful %s\n", j.Predicted)
	}
}

// Watch shows a text every five seconds, on a cleared terminal, until ctx ends.
func Watch(ctx context.Context, out io.Writer, show func(io.Writer) error) {
	wait.UntilWithContext(ctx, func(context.Context) {
		var text strings.Builder
		if err := show(&text); err != nil {
			fmt.Fprintln(&text, err) // a later look may succeed
		}
		fmt.Fprintf(out, "\033[H\033[2J%s", text.String())
	}, 5*time.Second)
}

func printWaits(out io.Writer, all []Wait) {
	for _, wait := range all {
		pods := wait.Pod
		if wait.More > 0 {
			pods += fmt.Sprintf(" and %d more", wait.More)
		}
		fmt.Fprintf(out, "  %s: %s: %s\n    next: %s\n", wait.Cause, pods, wait.Says, wait.Next)
	}
}
