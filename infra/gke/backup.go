package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/gkebackup"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// newBackupPlan registers the plan of backups, if there is one. Google refuses to
// delete a plan that has backups, and backups are to outlive the stack: the plan
// stays when its stack goes. So Pulumi gives each plan a name of its own, and a
// stack of the same name can come up again.
func newBackupPlan(ctx *pulumi.Context, name string, args Args, cluster *container.Cluster, child pulumi.ResourceOption) error {
	plan := args.Cluster.Backup.Plan
	if plan == nil {
		return nil
	}
	_, err := gkebackup.NewBackupPlan(ctx, name, &gkebackup.BackupPlanArgs{
		Project:  pulumi.String(args.Project),
		Location: pulumi.String(args.Cluster.Region),
		Cluster:  cluster.ID(),
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
	}, child, pulumi.RetainOnDelete(true))
	return err
}
