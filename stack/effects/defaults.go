package effects

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaulted returns a template of pods with what an API server fills in, where the template leaves it
// out. The values are of SetDefaults_PodSpec, SetDefaults_Container, SetDefaults_Probe, and
// SetDefaults_Volume in pkg/apis/core/v1/defaults.go of Kubernetes.
func defaulted(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template = *template.DeepCopy()
	pod := &template.Spec
	pod.DNSPolicy = cmp.Or(pod.DNSPolicy, corev1.DNSClusterFirst)
	pod.RestartPolicy = cmp.Or(pod.RestartPolicy, corev1.RestartPolicyAlways)
	pod.SchedulerName = cmp.Or(pod.SchedulerName, corev1.DefaultSchedulerName)
	pod.DeprecatedServiceAccount = pod.ServiceAccountName
	fill(&pod.SecurityContext, corev1.PodSecurityContext{})
	fill(&pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			fillContainer(&containers[i])
		}
	}
	for i := range pod.Volumes {
		fillVolume(&pod.Volumes[i].VolumeSource)
	}
	return template
}

// fill makes a field point to a value if it points to none.
func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func fillContainer(c *corev1.Container) {
	c.TerminationMessagePath = cmp.Or(c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	c.TerminationMessagePolicy = cmp.Or(c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	pull := corev1.PullIfNotPresent
	if latest(c.Image) {
		pull = corev1.PullAlways
	}
	c.ImagePullPolicy = cmp.Or(c.ImagePullPolicy, pull)
	for i := range c.Ports {
		c.Ports[i].Protocol = cmp.Or(c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for _, entry := range c.Env {
		if entry.ValueFrom != nil {
			fillFieldRef(entry.ValueFrom.FieldRef)
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil {
			continue
		}
		probe.TimeoutSeconds = cmp.Or(probe.TimeoutSeconds, 1)
		probe.PeriodSeconds = cmp.Or(probe.PeriodSeconds, 10)
		probe.SuccessThreshold = cmp.Or(probe.SuccessThreshold, 1)
		probe.FailureThreshold = cmp.Or(probe.FailureThreshold, 3)
		fillHTTPGet(probe.HTTPGet)
	}
}

// latest reports whether an image has the tag latest, or neither a tag nor a digest.
func latest(image string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	return strings.HasSuffix(name, ":latest") || !strings.ContainsAny(name, ":@")
}

func fillFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		ref.APIVersion = cmp.Or(ref.APIVersion, "v1")
	}
}

func fillHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		get.Path = cmp.Or(get.Path, "/")
		get.Scheme = cmp.Or(get.Scheme, corev1.URISchemeHTTP)
	}
}

func fillVolume(source *corev1.VolumeSource) {
	const mode int32 = 0o644
	if s := source.ConfigMap; s != nil {
		fill(&s.DefaultMode, mode)
	}
	if s := source.Secret; s != nil {
		fill(&s.DefaultMode, mode)
	}
	if s := source.HostPath; s != nil {
		fill(&s.Type, corev1.HostPathUnset)
	}
	if s := source.Ephemeral; s != nil && s.VolumeClaimTemplate != nil {
		fill(&s.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	if s := source.DownwardAPI; s != nil {
		fill(&s.DefaultMode, mode)
		fillFieldRefs(s.Items)
	}
	if s := source.Projected; s != nil {
		fill(&s.DefaultMode, mode)
		for _, part := range s.Sources {
			if part.ServiceAccountToken != nil {
				fill(&part.ServiceAccountToken.ExpirationSeconds, 60*60)
			}
			if part.DownwardAPI != nil {
				fillFieldRefs(part.DownwardAPI.Items)
			}
		}
	}
}

func fillFieldRefs(items []corev1.DownwardAPIVolumeFile) {
	for _, item := range items {
		fillFieldRef(item.FieldRef)
	}
}
