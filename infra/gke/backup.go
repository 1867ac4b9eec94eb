package gke

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/gkebackup"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// newBackupPlan registers the backup plan, if there is one. Google refuses to delete a plan that
// has backups, and backups must outlive the stack: destroy keeps the plan, and a stack of the same
// name takes it over. A second plan for the same cluster would make every backup twice.
func newBackupPlan(ctx *pulumi.Context, name string, args Args, cluster *container.Cluster, child pulumi.ResourceOrInvokeOption) error {
	plan := args.Cluster.Backup.Plan
	if plan == nil {
		return nil
	}
	opts := []pulumi.ResourceOption{child, pulumi.RetainOnDelete(true), pulumi.DependsOn([]pulumi.Resource{cluster})}
	exists, err := hasBackupPlan(ctx, args, child)
	if err != nil {
		return err
	}
	if exists {
		// Pulumi ignores this once the plan is in its state.
		opts = append(opts, pulumi.Import(pulumi.ID(fmt.Sprintf("projects/%s/locations/%s/backupPlans/%s",
			args.Project, args.Cluster.Region, args.Cluster.Name))))
	}
	_, err = gkebackup.NewBackupPlan(ctx, name, &gkebackup.BackupPlanArgs{
		Project:  pulumi.String(args.Project),
		Location: pulumi.String(args.Cluster.Region),
		Name:     pulumi.String(args.Cluster.Name),
		// Not the cluster's output: Pulumi would also replace the plan with a cluster that it replaces. It
		// would retain the plan, and Google refuses a second one of the same name.
		Cluster: pulumi.String(fmt.Sprintf("projects/%s/locations/%s/clusters/%s", args.Project, args.Cluster.Region, args.Cluster.Name)),
		BackupConfig: gkebackup.BackupPlanBackupConfigArgs{
			AllNamespaces:     pulumi.Bool(true),
			IncludeVolumeData: pulumi.Bool(true),
			IncludeSecrets:    pulumi.Bool(true),
		},
		BackupSchedule: gkebackup.BackupPlanBackupScheduleArgs{
			CronSchedule: pulumi.String(plan.Schedule),
		},
		RetentionPolicy: gkebackup.BackupPlanRetentionPolicyArgs{
			BackupRetainDays: pulumi.Int(plan.RetainDays),
		},
	}, opts...)
	return err
}

// hasBackupPlan reports whether the plan exists. The provider has no function that looks
// a plan up, only one for its policy, which is empty if there is no plan
// (tpgiamresource.DatasourceIamPolicyRead in terraform-provider-google).
func hasBackupPlan(ctx *pulumi.Context, args Args, cluster pulumi.InvokeOption) (bool, error) {
	policy, err := gkebackup.LookupBackupPlanIamPolicy(ctx, &gkebackup.LookupBackupPlanIamPolicyArgs{
		Project:  &args.Project,
		Location: &args.Cluster.Region,
		Name:     args.Cluster.Name,
	}, cluster)
	if err != nil {
		return false, fmt.Errorf("look for the backup plan %s: %w", args.Cluster.Name, err)
	}
	return policy.PolicyData != "", nil
}
