package pedl

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/config/input"
	"persia/kube"
)

const (
	databaseName   = "pedl-postgresql"
	headlessName   = databaseName + "-headless"
	postgreSQLPort = 5432
	// postgreSQLUser is the user, and the group of the data, in Bitnami's image.
	postgreSQLUser = 1001
	adminUser      = "postgres"
	passwordKey    = "postgresql-password"
	// extendedConfigDir is where Bitnami's image looks for settings.
	extendedConfigDir = "/bitnami/postgresql/conf/conf.d"
)

// DataVolume is the volume of PostgreSQL's pod that has the data.
const DataVolume = "data"

// NewDatabase registers the master's own PostgreSQL, after its namespace and the claim of its volume. It
// returns the server.
func NewDatabase(r *kube.Registrar, name string, args Args, needs []pulumi.CustomResource) pulumi.CustomResource {
	objects := r.Component("persia:pedl:Database", name)
	postgreSQL := args.PEDL.Postgres
	policy := kube.Needs(objects.Add(name, databasePolicy(postgreSQL.Service), needs))
	settings := objects.Add(name, settingsMap(postgreSQL), policy)
	needs = kube.Needs(settings, objects.Add(name, passwordSecret(postgreSQL), policy))
	for _, service := range databaseServices(postgreSQL.Service) {
		needs = append(needs, objects.Add(service.Name, service, policy))
	}
	if postgreSQL.Persistence.StorageClass != "" {
		// The class would delete the data along with its claim.
		needs = append(needs, objects.Add(name, classClaim(postgreSQL.Persistence), policy, kept(args.Adopter)...))
	}
	return objects.AddWith(name, statefulSet(args), restartedBy(settings), needs, kube.WorkloadTimeouts())
}

// versionAnnotation of a pod is the version of the object that it is configured by: with another one it starts again.
const versionAnnotation = "configuration-version"

func restartedBy(configuration *kube.Object) kube.Later {
	return kube.Later{"spec.template.metadata.annotations." + versionAnnotation: configuration.Version()}
}

func passwordSecret(postgreSQL config.PostgreSQL) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(NamespaceName, databaseName, databaseName),
		Data:       map[string][]byte{passwordKey: []byte(string(postgreSQL.Password))},
	}
}

func settingsMap(postgreSQL config.PostgreSQL) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: meta(NamespaceName, databaseName, databaseName),
		Data:       map[string]string{"extended.conf": extendedConfig(postgreSQL.ExtendedConfig)},
	}
}

// databaseServices returns the Service of the master, and the one that a StatefulSet must have.
func databaseServices(settings config.DatabaseService) []*corev1.Service {
	ports := func(number int32) []corev1.ServicePort {
		return []corev1.ServicePort{{Name: "postgresql", Port: number, TargetPort: intstr.FromString("postgresql")}}
	}
	return []*corev1.Service{
		service(databaseName, databaseName, corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ExternalIPs: settings.ExternalIPs, Ports: ports(int32(settings.Port)),
		}),
		service(headlessName, databaseName, corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: ports(postgreSQLPort)}),
	}
}

// classClaim asks a storage class for a volume.
func classClaim(persistence config.Persistence) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: meta(NamespaceName, config.PEDLVolume, databaseName),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{persistence.AccessMode},
			StorageClassName: &persistence.StorageClass,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(persistence.Size)},
			},
		},
	}
	claim.Annotations = persistence.Annotations
	return claim
}

// ClaimName returns the claim of the database's data, or "".
func ClaimName(persistence config.Persistence) string {
	switch {
	case !persistence.Enabled:
		return ""
	case persistence.ExistingClaim != "":
		return persistence.ExistingClaim
	default:
		return config.PEDLVolume
	}
}

func statefulSet(args Args) *appsv1.StatefulSet {
	pod := postgreSQLPod(args)
	args.Placement.Apply(&pod)
	return &appsv1.StatefulSet{
		ObjectMeta: meta(NamespaceName, databaseName, databaseName),
		Spec: appsv1.StatefulSetSpec{
			ServiceName:    headlessName,
			Replicas:       new(int32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: selector(databaseName)},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Template:       template(databaseName, databaseName, pod),
		},
	}
}

func postgreSQLPod(args Args) corev1.PodSpec {
	postgreSQL := args.PEDL.Postgres
	image := postgreSQL.Image
	persistence := postgreSQL.Persistence
	pod := corev1.PodSpec{
		SchedulerName:                 postgreSQL.SchedulerName,
		ImagePullSecrets:              image.PullSecrets,
		TerminationGracePeriodSeconds: new(int64(120)), // time to write the memory to the disk
		Containers: []corev1.Container{{
			Name:            "postgresql",
			Image:           args.Images.PulledWith(image.PullSecrets, image.Reference()),
			ImagePullPolicy: image.PullPolicy,
			Env:             postgreSQLEnv(postgreSQL),
			Ports:           []corev1.ContainerPort{{Name: "postgresql", ContainerPort: postgreSQLPort}},
			Resources:       postgreSQL.Resources,
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
					Command: []string{"pg_isready", "-h", "127.0.0.1", "-p", fmt.Sprint(postgreSQLPort), "-U", adminUser},
				}},
				TimeoutSeconds: 5,
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: DataVolume, MountPath: persistence.MountPath, SubPath: persistence.SubPath},
				{Name: "settings", MountPath: extendedConfigDir, ReadOnly: true},
				{Name: "shared-memory", MountPath: "/dev/shm"},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: DataVolume, VolumeSource: dataSource(persistence)},
			kube.ConfigMapVolume("settings", databaseName),
			// Parallel queries want more than the 64 MiB that a container has.
			{Name: "shared-memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		},
	}
	kube.Restrict(&pod, postgreSQLUser)
	pod.SecurityContext.FSGroup, pod.SecurityContext.FSGroupChangePolicy = new(int64(postgreSQLUser)), new(corev1.FSGroupChangeOnRootMismatch)
	// The image writes its configuration next to its programs.
	pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem = new(false)
	return pod
}

func dataSource(persistence config.Persistence) corev1.VolumeSource {
	claim := ClaimName(persistence)
	if claim == "" {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
}

// postgreSQLEnv returns the variables from which Bitnami's image creates the database, once.
func postgreSQLEnv(postgreSQL config.PostgreSQL) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "POSTGRESQL_USERNAME", Value: adminUser},
		{Name: "POSTGRESQL_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: databaseName}, Key: passwordKey,
		}}},
		{Name: "POSTGRESQL_DATABASE", Value: postgreSQL.Database},
		{Name: "PGDATA", Value: path.Join(postgreSQL.Persistence.MountPath, "data")},
	}
	if postgreSQL.InitdbArgs != "" {
		env = append(env, corev1.EnvVar{Name: "POSTGRESQL_INITDB_ARGS", Value: postgreSQL.InitdbArgs})
	}
	return env
}

// extendedConfig returns settings as PostgreSQL's configuration, in which maxConnections is max_connections.
func extendedConfig(settings map[string]config.SettingValue) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(string(settings[name]))
		fmt.Fprintf(&text, "%s = '%s'\n", snakeCase(name), value)
	}
	return text.String()
}

var capital = regexp.MustCompile(`[A-Z]`)

func snakeCase(name string) string { return strings.ToLower(capital.ReplaceAllString(name, "_$0")) }

// connection is how the master gets to its database.
type connection struct {
	host           string
	port           int
	user, database string
	password       input.Secret
	// external says that the database is not the stack's.
	external bool
}

func connectionOf(postgreSQL config.PostgreSQL) connection {
	if e := postgreSQL.External; e != nil {
		return connection{e.Host, e.Port, e.User, e.Database, e.Password, true}
	}
	host := fmt.Sprintf("%s.%s.svc", databaseName, NamespaceName)
	return connection{host, postgreSQL.Service.Port, adminUser, postgreSQL.Database, postgreSQL.Password, false}
}

// masterConfig returns the master's configuration file.
func masterConfig(c connection) []byte {
	text, err := yaml.Marshal(map[string]any{
		"port": masterPort,
		"db": map[string]any{
			"host":     c.host,
			"port":     c.port,
			"user":     c.user,
			"password": string(c.password),
			"name":     c.database,
		},
	})
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return text
}
