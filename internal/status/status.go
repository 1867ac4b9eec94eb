// Package status reports what the training jobs of a cluster do, and why they wait. It only reads the cluster.
package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/config"
	"persia/gcp"
)

// Report is the state of a cluster's jobs at a time.
type Report struct {
	Pools []nodePool `json:"pools"`
	Jobs  []Job      `json:"jobs"`
	// NATS are the servers of NATS that do not run, with why, and Controllers the Deployments of stacks that do not.
	NATS        []Wait `json:"nats"`
	Controllers []Wait `json:"controllers"`
	// Unread is what the user may not read.
	Unread []string `json:"unread"`
}

// Job is a training job, with what it waits for.
type Job struct {
	Training
	// restCost is what the hours that were not useful have cost, or "".
	restCost string
	Waits    []Wait `json:"waits"`
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

// read is [Read] with clients. The client kinds is for the kinds of Kueue, of GKE, and of NATS' operator.
func read(ctx context.Context, client kubernetes.Interface, kinds dynamic.Interface, now time.Time) (Report, error) {
	trainings, err := List(ctx, client)
	if err != nil {
		return Report{}, err
	}
	groups, err := client.Discovery().ServerGroups()
	if err != nil {
		return Report{}, fmt.Errorf("read the kinds of the cluster: %w", err)
	}
	report := Report{Pools: []nodePool{}, Jobs: []Job{}, NATS: []Wait{}, Controllers: []Wait{}, Unread: []string{}}
	var failed error
	// may notes what the user may not read, and the first other error.
	may := func(what string, err error) {
		if apierrors.IsForbidden(err) {
			report.Unread = append(report.Unread, what)
		} else if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("read %s: %w", what, err))
		}
	}
	// records returns all objects of a kind, or none in a cluster without the kind.
	records := func(kind schema.GroupVersionResource) []record {
		if !slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == kind.Group }) {
			return nil
		}
		all, err := records(ctx, kinds, kind)
		may("the "+kind.Resource, err)
		return all
	}
	var asked map[string][]Wait
	if slices.ContainsFunc(trainings, asksForNodes) {
		asked = requested(records(requests))
	}
	queues := queued(records(workloads), now)
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	may("the nodes", err)
	if nodes == nil {
		nodes = &corev1.NodeList{}
	}
	report.Pools = poolsOf(nodes.Items, trainings)
	for _, training := range trainings {
		job, id := Job{Training: training}, training.Namespace+"/"+training.Job
		if !asksForNodes(training) {
			delete(asked, id) // the request stays when the nodes are there
		}
		ofPods, err := waits(ctx, client, training.Namespace, training.Pods, training.owners)
		may("the events of "+training.Namespace, err)
		job.Waits = append([]Wait{}, slices.Concat(queues[id], asked[id], ofPods)...)
		job.restCost = job.cost(nodes.Items)
		report.Jobs = append(report.Jobs, job)
	}
	servers, err := client.CoreV1().Pods(config.NATSNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=nats"})
	if may("the pods of "+config.NATSNamespace, err); err == nil {
		ofServers, err := waits(ctx, client, config.NATSNamespace, servers.Items, nil)
		may("the events of "+config.NATSNamespace, err)
		report.NATS = append(report.NATS, ofServers...)
	}
	unread := len(report.Unread)
	if there := records(natsClusters); len(report.Unread) == unread {
		report.NATS = slices.Insert(report.NATS, 0, missingNATS(there, trainings)...)
	}
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=persia"}
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, ours)
	if may("the controllers", err); err == nil {
		report.Controllers = append(report.Controllers, idle(deployments.Items)...)
	}
	return report, failed
}

// missingNATS returns the NATS clusters that pods of trainings connect to, and that are not among those that are there.
func missingNATS(there []record, trainings []Training) []Wait {
	wanted := map[string]bool{}
	for _, training := range trainings {
		wanted[training.nats] = true
	}
	delete(wanted, "")
	for _, cluster := range there {
		delete(wanted, cluster.Name)
	}
	var missing []Wait
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		missing = append(missing, Wait{Cause: "deleted", Pod: name, Says: "the NatsCluster is not there", Next: "pulumi up --refresh"})
	}
	return missing
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
		return nil, err
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
	printPools(out, r.Pools)
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
	if len(r.Unread) > 0 {
		fmt.Fprintf(out, "\nYou may not read %s, so this is not all.\n", strings.Join(r.Unread, ", "))
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

// Watch shows a text every five seconds, on a screen that it clears if out is a terminal, until ctx ends.
func Watch(ctx context.Context, out io.Writer, show func(io.Writer) error) {
	file, isFile := out.(*os.File)
	wait.UntilWithContext(ctx, func(context.Context) {
		var text strings.Builder
		if err := show(&text); err != nil {
			fmt.Fprintln(&text, err) // a later look may succeed
		}
		if isFile && term.IsTerminal(int(file.Fd())) {
			fmt.Fprint(out, "\033[H\033[2J")
		}
		fmt.Fprint(out, text.String())
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
