// Package stack is the program: [Deploy] turns a stack file into a running
// PERSIA training, from the network to the last replica.
package stack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/capacity"
	"persia/config"
	"persia/config/input"
	"persia/infra/before"
	"persia/infra/gke"
	"persia/infra/gpu"
	"persia/infra/storage"
	"persia/kube"
	"persia/stack/effects"
	"persia/workload/nats"
	"persia/workload/persia"
	"persia/workload/queue"
)

// Deploy is the Pulumi program. It reads the files next to Pulumi.yaml.
func Deploy(ctx *pulumi.Context) error {
	return DeployFrom(ctx, os.DirFS(cmp.Or(ctx.RootDirectory(), ".")), func([]effects.Effect) {})
}

// DeployFrom deploys the stack whose file, and the files that it names, are in files. It registers nothing unless the
// whole stack file is valid. It announces what the update does to what runs.
func DeployFrom(ctx *pulumi.Context, files fs.FS, announce func([]effects.Effect)) error {
	d := &deployment{ctx: ctx, announce: announce}
	read := func() error { return d.read(files) }
	for _, step := range []func() error{read, d.check, d.lookUp, d.register, d.report} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// deployment is one run of the program.
type deployment struct {
	ctx      *pulumi.Context
	announce func([]effects.Effect)
	cfg      *config.Stack
	// before is the state before this update, and ran what ran in it.
	before before.State
	ran    effects.State
	plan   capacity.Plan
	// google is the provider of Google Cloud. It is nil on an existing cluster.
	google pulumi.ProviderResource
	// replaced is the cluster that gives way to another one, or nil.
	replaced *gke.Replacement

	data    *storedData
	cluster *gke.Cluster
	// in registers what is inside the cluster.
	in *kube.Registrar
	// volumes are in the order of the stack file, and brokers in the order of the jobs.
	volumes []*storage.Volume
	brokers []nats.Cluster
	// pedl is the output that describes PEDL, without secrets. It is nil in a stack without PEDL.
	pedl pulumi.Map
}

// read reads the stack file, and the state before this update.
func (d *deployment) read(files fs.FS) (err error) {
	// There may be no such file, because the user may name another one with --config-file.
	file, err := input.ReadStackFile(files, input.StackFileName(d.ctx.Stack()), d.ctx.Project())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = file.CheckKeys(d.ctx.Project(), config.Keys()); err != nil {
		return err
	}
	if d.cfg, err = config.Load(d.ctx.GetConfig, files); err != nil {
		return err
	}
	if err = config.CheckSecrets(d.ctx, file); err != nil {
		return err
	}
	if d.before, err = before.Read(d.ctx, path.Join(d.cfg.Project, d.cfg.Cluster.Region, d.cfg.Cluster.Name)); err != nil {
		return err
	}
	d.ran = effects.Read(d.before.Resources)
	d.replaced = gke.Replaced(d.cfg.Project, d.cfg.Cluster, d.before.Resources)
	d.plan = d.cfg.Plan(d.ran.Leaving(d.cfg.Pools())...)
	return nil
}

// check says what the stack needs, and refuses what an update could not finish, before it registers anything but a provider.
func (d *deployment) check() (err error) {
	refused := d.refuse()
	if refused == nil {
		if d.google, err = newGoogle(d.ctx, d.cfg.Project); err != nil {
			return err
		}
		if err := d.measure(); err != nil {
			return err
		}
	}
	if err := d.sayNeeds(); err != nil {
		return err
	}
	warnings := slices.Concat(d.cfg.Warnings(), d.idle())
	if len(d.before.Outputs) == 0 { // no update has succeeded
		warnings = slices.Concat(warnings, d.cfg.FirstWarnings())
	}
	warnings = append(warnings, gke.ReplaceWarning(d.replaced, d.cfg.Cluster),
		gke.AccessWarning(d.cfg.Project, d.cfg.Cluster, d.before.Resources))
	return cmp.Or(d.warn(warnings...), refused)
}

// sayNeeds says in a preview what the stack needs. What differs from the last update comes first.
func (d *deployment) sayNeeds() error {
	if !d.ctx.DryRun() {
		return nil
	}
	earlier, _ := d.before.Outputs[lastTables].([]any)
	changed, others := d.plan.Since(earlier)
	sum := input.Count(d.plan.Nodes, "node")
	if gpus := int(d.plan.Allocatable.GPUs); gpus > 0 {
		sum += ", " + input.Count(gpus, "GPU")
	}
	if changed == "" {
		sum += ", unchanged"
	}
	var last *float64
	if cost, known := d.before.Outputs[hourlyCost].(float64); known {
		last = &cost
	}
	err := d.ctx.Log.Info(config.DetailsTitle+"\n\n"+others, nil)
	return cmp.Or(err, d.ctx.Log.Info(fmt.Sprintf("%s %s; %s\n\n%s", config.NeedsTitle, sum, d.plan.Cost(last), changed), nil))
}

// idle warns of GPUs that are paid for on nodes where jobs use others.
func (d *deployment) idle() (warnings []string) {
	for _, pool := range d.plan.Pools {
		if idle := pool.Stranded.GPUs; idle > 0 && pool.Used.GPUs > 0 {
			warnings = append(warnings, fmt.Sprintf("persia:nodePools: %d of %s of the pool %s idle", idle,
				input.Count(int(idle+pool.Used.GPUs), "GPU"), pool.Name))
		}
	}
	return warnings
}

// refuse refuses what an update could not finish.
func (d *deployment) refuse() error {
	if err := checkExisting(d.ctx, d.cfg, d.before); err != nil {
		return err
	}
	if err := gke.CheckRanges(d.cfg.Project, d.cfg.Cluster, d.before.Resources); err != nil {
		return err
	}
	if d.replaced != nil {
		return gke.CheckReplaced(d.replaced, d.cfg.Cluster, d.ran.Running())
	}
	return checkOrder(d.cfg, d.plan, d.ran)
}

// warn shows texts that are not empty.
func (d *deployment) warn(texts ...string) error {
	for _, text := range texts {
		if text == "" {
			continue
		}
		if err := d.ctx.Log.Warn(text, nil); err != nil {
			return err
		}
	}
	return nil
}

// register registers all parts of the stack, each after what it needs.
func (d *deployment) register() (err error) {
	cfg := d.cfg
	if d.cluster, err = d.newCluster(); err != nil {
		return err
	}
	// What follows is inside the cluster, and comes after its nodes.
	d.in = kube.NewRegistrar(d.ctx, pulumi.Provider(d.cluster.Provider), d.inGoogle())
	d.in.Images, d.in.System = cfg.Images, placement(cfg, cfg.SystemPoolName())
	driver := gpu.NewDriver(d.in, "nvidia-driver", cfg.NVIDIADriver)
	priorities := queue.NewPriorityClasses(d.in, "persia")
	policies := d.newPolicies()
	natsOperator := nats.NewOperator(d.in, "nats-operator")
	namespace := persia.NewNamespace(d.in, "persia", persia.NamespaceArgs{
		HostPaths:       cfg.MountsHostPaths(),
		Monitoring:      monitoring(cfg.Cluster),
		MonitoringNeeds: natsOperator,
	})
	d.newVolumes(namespace)
	closed := slices.Concat(policies, namespace, gke.NewComputeClasses(d.in, cfg.PoolLists()))
	d.newNATS(slices.Concat(priorities, closed, natsOperator))
	controllers := d.newControllers(closed)
	d.newJobs(slices.Concat(driver, priorities, closed, d.claims(), controllers))
	d.newPEDL(driver)
	return cmp.Or(d.in.End(), d.data.keys.End(d.ctx))
}

// newControllers registers what creates the pods of jobs, and the queues.
func (d *deployment) newControllers(needs []pulumi.CustomResource) []pulumi.CustomResource {
	var controllers []pulumi.CustomResource
	if d.cfg.UsesOperator() {
		controllers = persia.NewOperator(d.in, "persia-operator", d.cfg.Operator.Image, d.cluster.Adopter, needs)
	}
	if d.cfg.InstallsJobSet() {
		jobSet := queue.InstallJobSet(d.in, "jobset", needs)
		controllers, needs = slices.Concat(controllers, jobSet), slices.Concat(needs, jobSet)
	}
	return slices.Concat(controllers, d.newQueues(needs))
}

// report says what the update does to what runs, and exports the outputs.
func (d *deployment) report() error {
	does := d.effects()
	d.announce(does)
	err := d.warn(effects.Text(does))
	d.export()
	return err
}

// effects returns what the update does to running pods and stored data. A new stack has none.
func (d *deployment) effects() []effects.Effect {
	after := effects.New()
	after.Replaced = d.replaced
	for _, object := range d.in.Planned {
		after.Add(object)
	}
	if d.cfg.Cluster.Existing == nil {
		for _, pool := range d.cfg.Pools() {
			after.AddPool(d.cfg.PoolPath(pool.Name), effects.WantedPool{Pool: pool, Cluster: d.cfg.Cluster, Driver: d.cfg.NVIDIADriver})
		}
	}
	return effects.Of(d.ran, after)
}

const (
	// hourlyCost is the output with the cost of all nodes for an hour.
	hourlyCost = "hourlyCost"
	// lastTables is the output with the tables of the plan, with which the next preview compares. Pulumi does not show it.
	lastTables = "__plan"
)

// export exports all outputs of the stack.
func (d *deployment) export() {
	volumes := pulumi.Array{}
	for _, volume := range d.volumes {
		volumes = append(volumes, kube.Outputs(volume))
	}
	outputs := pulumi.Map{
		"clusterName":       d.cluster.Name,
		"natsUrl":           pulumi.String(d.brokers[0].Broker.URL),
		"checkpointVolumes": volumes,
		"serviceAccounts":   serviceAccounts(d.before.ID, d.cfg),
		lastTables:          pulumi.ToStringArray(d.cfg.Plan().Decisive()),
	}
	if d.cluster.Access != nil {
		outputs["clusterEndpoint"] = d.cluster.Access.Endpoint
		outputs["kubeconfig"] = d.cluster.Access.Kubeconfig
	}
	if cost := d.plan.HourlyCost; cost != nil {
		outputs[hourlyCost] = pulumi.Float64(*cost)
	}
	if d.pedl != nil {
		outputs["pedl"] = d.pedl
	}
	for name, value := range outputs {
		d.ctx.Export(name, value)
	}
}
