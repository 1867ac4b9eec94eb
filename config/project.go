package config

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var projectForm = regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`)

func (v *validator) project() {
	if v.stack.Cluster.Existing != nil {
		return
	}
	path := field.NewPath(projectKey)
	if v.stack.Project == "" {
		v.Required(path, "write the id of the Google Cloud project, like my-project-123")
		return
	}
	if !projectForm.MatchString(v.stack.Project) {
		v.Invalid(path, v.stack.Project, "must be a project id: 6 to 30 lower case letters, digits and hyphens, starting with a letter and not ending with a hyphen; `gcloud projects list` shows yours")
	}
}
