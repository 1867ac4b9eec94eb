package gcp

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/gcp/google"
)

// textOf returns a string of the program, or "".
func textOf(properties resource.PropertyMap, name string) string {
	if value := properties[resource.PropertyKey(name)]; value.IsString() {
		return value.StringValue()
	}
	return ""
}

// call answers a function.
func (p *Provider) call(function tokens.ModuleMember, args resource.PropertyMap) (resource.PropertyMap, error) {
	switch function {
	case "gcp:organizations/getProject:getProject":
		project := textOf(args, "projectId")
		if project == "" {
			return nil, errors.New("projectId is required: the simulated Google Cloud has no default project")
		}
		return resource.NewPropertyMapFromMap(map[string]any{
			"id": "projects/" + project, "projectId": project, "name": project, "number": google.ProjectNumber,
		}), nil
	case "gcp:storage/getProjectServiceAccount:getProjectServiceAccount":
		email := "service-" + google.ProjectNumber + "@gs-project-accounts.iam.gserviceaccount.com"
		return resource.NewPropertyMapFromMap(map[string]any{"emailAddress": email, "member": "serviceAccount:" + email}), nil
	case "gcp:storage/getBuckets:getBuckets":
		return p.getBuckets(args)
	case "gcp:storage/getBucketObjectContent:getBucketObjectContent":
		return p.getObject(textOf(args, "bucket"), textOf(args, "name"))
	}
	for _, r := range p.types {
		if r.Function == function {
			return r.lookup(os.Expand(r.ID, func(field string) string { return textOf(args, field) }))
		}
	}
	return nil, unknown("function", string(function))
}

func (p *Provider) getBuckets(args resource.PropertyMap) (resource.PropertyMap, error) {
	buckets, err := p.api.cloud.List("storage.bucket")
	found := []any{}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		bucket := buckets[name]
		if strings.HasPrefix(name, textOf(args, "prefix")) && bucket["project"] == textOf(args, "project") {
			found = append(found, map[string]any{"name": name, "location": bucket["location"], "labels": bucket["labels"]})
		}
	}
	return resource.NewPropertyMapFromMap(map[string]any{"buckets": found}), err
}

// getObject reads an object from the server of the buckets. Without a server, no bucket has objects. Like the official
// provider, it tries for two minutes where the server has an error.
func (p *Provider) getObject(bucket, name string) (resource.PropertyMap, error) {
	status, content := http.StatusNotFound, []byte(nil)
	for begin := time.Now(); p.Buckets != ""; time.Sleep(time.Second) {
		resp, err := http.Get("http://" + p.Buckets + "/" + bucket + "/" + name)
		if err != nil {
			return nil, err
		}
		content, err = io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		if status = resp.StatusCode; status < http.StatusInternalServerError || time.Since(begin) > 2*time.Minute {
			break
		}
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("error downloading storage bucket object: googleapi: got HTTP response code %d", status)
	}
	return resource.NewPropertyMapFromMap(map[string]any{"bucket": bucket, "name": name, "content": string(content)}), nil
}

// lookup answers with a resource, or with the error of Google Cloud's provider. A block that occurs at
// most once is a list there.
func (r *resourceType) lookup(name string) (resource.PropertyMap, error) {
	body, err := r.api.cloud.Get(r.API, name)
	if err != nil {
		return nil, err
	}
	if body == nil {
		return nil, fmt.Errorf("1 error occurred:\n\t* %s not found", name)
	}
	object, err := r.object(name, body)
	return toPulumi(unbounded(r.fields), object), err
}

// unbounded are fields with any number of elements in each list.
func unbounded(in fields) fields {
	copied := fields{}
	for name, field := range in {
		s := *field
		s.MaxItems = 0
		if below := nested(field); below != nil {
			s.Elem = &schema.Resource{Schema: unbounded(below)}
		}
		copied[name] = &s
	}
	return copied
}

// Kept returns the names of the resources in a cloud that outlive stacks.
func Kept(cloud *google.Cloud) ([]string, error) {
	var kept []string
	for _, k := range kinds() {
		if k.Called == "" {
			continue
		}
		all, err := cloud.List(k.API)
		if err != nil {
			return nil, err
		}
		for name := range all {
			kept = append(kept, k.Called+" "+name)
		}
	}
	slices.Sort(kept)
	return kept, nil
}
