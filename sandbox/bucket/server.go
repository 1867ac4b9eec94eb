// Package bucket serves a bucket like Cloud Storage does, for gcsfuse and other Go clients of its JSON and
// XML interfaces on this machine. It keeps objects in memory.
//
// It is at least as strict as Cloud Storage: it allows one write a second to a name, an upload becomes an
// object only when it is complete, a precondition that does not hold fails, and a chunk that comes twice
// counts once (https://cloud.google.com/storage/quotas, .../docs/resumable-uploads).
package bucket

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server serves one bucket.
type Server struct {
	// Refused has the name of each write that came too soon after another one. Look at it when no client writes.
	Refused    []string
	name       string
	mu         sync.Mutex
	objects    map[string]*object
	uploads    map[string]*upload
	written    map[string]time.Time // when each object was last written
	generation int64
	faults     []*Fault
}

type object struct {
	content                    []byte
	generation, metageneration int64
	updated                    time.Time
	contentType                string
	metadata                   map[string]string
}

// upload is a resumable upload.
type upload struct {
	query      url.Values
	attributes attributes
	content    []byte
}

// attributes are what a client says of an object.
type attributes struct {
	ContentType string            `json:"contentType"`
	Metadata    map[string]string `json:"metadata"`
	CRC32C      string            `json:"crc32c"`
}

// Fault makes the server fail requests, or answer them late.
type Fault struct {
	// Method and Name select the requests: an HTTP method, and a part of the object's name. Empty texts select all.
	Method, Name string
	// Times counts down with each request that fails.
	Times int
	// Status is the answer. 0 breaks the connection in the middle of the request's body.
	Status int
	// Delay is how long the answer takes.
	Delay time.Duration
}

// failure is an answer other than 200.
type failure struct {
	status int
	reason string
}

func (f failure) Error() string { return fmt.Sprintf("%d %s", f.status, f.reason) }

var (
	notFound     = failure{http.StatusNotFound, "notFound"}
	conditionNot = failure{http.StatusPreconditionFailed, "conditionNotMet"}
	tooManyTimes = failure{http.StatusTooManyRequests, "rateLimitExceeded"}
)

// betweenWrites is the time between two writes of a name.
const betweenWrites = time.Second

// New returns a server of an empty bucket.
func New(name string) *Server {
	return &Server{name: name, objects: map[string]*object{}, uploads: map[string]*upload{}, written: map[string]time.Time{}}
}

// Inject makes requests fail from now on.
func (s *Server) Inject(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Content returns the content of an object, or nothing if it does not exist.
func (s *Server) Content(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[name]; ok {
		return o.content
	}
	return nil
}

// fault takes the next fault for a request.
func (s *Server) fault(r *http.Request) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		name := r.URL.Path + " " + r.URL.Query().Get("name")
		if u, ok := s.uploads[r.URL.Query().Get("upload_id")]; ok {
			name += " " + u.query.Get("name")
		}
		if f.Times > 0 && (f.Method == "" || f.Method == r.Method) && strings.Contains(name, f.Name) {
			f.Times--
			return *f, true
		}
	}
	return Fault{}, false
}

// ServeHTTP answers a request of the JSON interface, or a download through the XML one.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f, ok := s.fault(r); ok {
		time.Sleep(f.Delay)
		switch {
		case f.Status == 0 && f.Delay == 0:
			io.CopyN(io.Discard, r.Body, r.ContentLength/2)
			panic(http.ErrAbortHandler)
		case f.Status != 0:
			refuse(w, failure{f.Status, "backendError"})
			return
		}
	}
	// Names are escaped in paths, so that a / in them is no separator.
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i := range path {
		path[i], _ = url.PathUnescape(path[i])
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The client has gone in the middle of its request.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, err := s.serve(w, r, path, body)
	var failed failure
	if errors.As(err, &failed) {
		refuse(w, failed)
	} else if value != nil {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(value)
	}
}

// serve returns the answer to a request, or nil if it has answered.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, path []string, body []byte) (any, error) {
	q := r.URL.Query()
	switch at := strings.Join(path[:min(3, len(path))], "/"); {
	case !slices.Contains(path, s.name):
		return nil, notFound
	case at == "upload/storage/v1" && q.Has("upload_id"):
		return s.resume(w, r, body)
	case at == "upload/storage/v1" && q.Get("uploadType") == "resumable":
		return s.begin(w, r, body)
	case at == "upload/storage/v1":
		return s.upload(r, body)
	case at == "storage/v1/b" && len(path) == 5:
		return s.list(q), nil
	case at == "storage/v1/b" && len(path) >= 6:
		return s.object(w, r, path[5], path[6:])
	}
	return nil, s.download(w, r, strings.Join(path[1:], "/"))
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, f failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": f.status, "message": f.reason, "errors": []any{map[string]string{"reason": f.reason, "message": f.reason}},
	}})
}

// resource returns an object as the JSON interface describes it.
func (s *Server) resource(name string, o *object) map[string]any {
	return map[string]any{
		"kind": "storage#object", "bucket": s.name, "name": name, "id": fmt.Sprintf("%s/%s/%d", s.name, name, o.generation),
		"generation": strconv.FormatInt(o.generation, 10), "metageneration": strconv.FormatInt(o.metageneration, 10),
		"size": strconv.Itoa(len(o.content)), "contentType": o.contentType, "metadata": o.metadata, "storageClass": "STANDARD",
		"updated": o.updated.Format(time.RFC3339Nano), "timeCreated": o.updated.Format(time.RFC3339Nano),
		"crc32c": checksum(o.content),
	}
}

func checksum(content []byte) string {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// list returns the objects below a prefix, and with the next level of folders if the query has a
// delimiter (https://cloud.google.com/storage/docs/json_api/v1/objects/list). All are on one page.
func (s *Server) list(q url.Values) any {
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	items, prefixes := []any{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		rest, below := strings.CutPrefix(name, prefix)
		if !below || name < q.Get("startOffset") || q.Get("endOffset") != "" && name >= q.Get("endOffset") {
			continue
		}
		if folder, _, deeper := strings.Cut(rest, delimiter); delimiter != "" && deeper {
			folder = prefix + folder + delimiter
			if !slices.Contains(prefixes, folder) {
				prefixes = append(prefixes, folder)
			}
			if name != folder || q.Get("includeTrailingDelimiter") != "true" {
				continue
			}
		}
		items = append(items, s.resource(name, s.objects[name]))
	}
	return map[string]any{"kind": "storage#objects", "items": items, "prefixes": prefixes}
}

// conditions reports which precondition of a query an object, or nil, does not meet. which is "" or Source.
func conditions(q url.Values, which string, o *object) error {
	var generation, metageneration int64
	if o != nil {
		generation, metageneration = o.generation, o.metageneration
	}
	for name, has := range map[string]int64{"GenerationMatch": generation, "MetagenerationMatch": metageneration} {
		if want := q.Get("if" + which + name); want != "" && want != strconv.FormatInt(has, 10) {
			return conditionNot
		}
	}
	return nil
}

// current reports whether a client asks for the object as it is. 0 is any generation.
func current(generation string, o *object) bool {
	return generation == "" || generation == "0" || generation == strconv.FormatInt(o.generation, 10)
}

// put writes an object whole, and returns it as the JSON interface describes it.
func (s *Server) put(name string, q url.Values, a attributes, content []byte) (any, error) {
	if err := conditions(q, "", s.objects[name]); err != nil {
		return nil, err
	}
	if a.CRC32C != "" && a.CRC32C != checksum(content) {
		return nil, failure{http.StatusBadRequest, "invalid"}
	}
	if time.Since(s.written[name]) < betweenWrites {
		s.Refused = append(s.Refused, name)
		return nil, tooManyTimes
	}
	s.written[name] = time.Now()
	s.generation = max(s.generation+1, time.Now().UnixMicro())
	s.objects[name] = &object{content, s.generation, 1, time.Now().UTC(), a.ContentType, a.Metadata}
	return s.resource(name, s.objects[name]), nil
}

// begin begins a resumable upload.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	u := &upload{query: r.URL.Query()}
	if err := json.Unmarshal(body, &u.attributes); err != nil {
		return nil, failure{http.StatusBadRequest, err.Error()}
	}
	s.generation++
	id := strconv.FormatInt(s.generation, 36)
	s.uploads[id] = u
	w.Header().Set("Location", fmt.Sprintf("http://%s/upload/storage/v1/b/%s/o?uploadType=resumable&upload_id=%s", r.Host, s.name, id))
	return struct{}{}, nil
}

// upload takes an object in one request, whose first part has the attributes and whose second the content.
func (s *Server) upload(r *http.Request, body []byte) (any, error) {
	_, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	parts := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
	var contents [2][]byte
	for i := range contents {
		part, err := parts.NextPart()
		if err == nil {
			contents[i], err = io.ReadAll(part)
		}
		if err != nil {
			return nil, failure{http.StatusBadRequest, err.Error()}
		}
	}
	var a attributes
	if err := json.Unmarshal(contents[0], &a); err != nil {
		return nil, failure{http.StatusBadRequest, err.Error()}
	}
	return s.put(r.URL.Query().Get("name"), r.URL.Query(), a, contents[1])
}

// resume takes the next chunk of a resumable upload: "bytes FIRST-LAST/TOTAL", or "bytes */TOTAL", where
// TOTAL is * until the client knows it. Only the chunk that reaches TOTAL makes an object.
func (s *Server) resume(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	id := r.URL.Query().Get("upload_id")
	u, ok := s.uploads[id]
	if !ok {
		return nil, notFound
	}
	place, total, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	if first, _, ok := strings.Cut(place, "-"); ok {
		at, err := strconv.Atoi(first)
		if err != nil || at > len(u.content) {
			return nil, failure{http.StatusBadRequest, "invalid range"}
		}
		if end := at + len(body); end > len(u.content) {
			u.content = append(u.content, body[len(u.content)-at:]...)
		}
	}
	if n, err := strconv.Atoi(total); err != nil || n != len(u.content) {
		if len(u.content) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.content)-1))
		}
		// Go's client asks for 200 in place of 308, which net/http would take for a redirection.
		w.Header().Set("X-Http-Status-Code-Override", "308")
		return nil, nil
	}
	value, err := s.put(u.query.Get("name"), u.query, u.attributes, u.content)
	if err == nil {
		delete(s.uploads, id)
	}
	return value, err
}

// object answers what a client asks of one object.
func (s *Server) object(w http.ResponseWriter, r *http.Request, name string, more []string) (any, error) {
	q := r.URL.Query()
	o, ok := s.objects[name]
	if !ok || !current(q.Get("generation"), o) {
		return nil, notFound
	}
	if err := conditions(q, map[bool]string{true: "Source"}[len(more) > 0], o); err != nil {
		return nil, err
	}
	switch {
	case r.Method == http.MethodGet:
		return s.resource(name, o), nil
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
		return nil, nil
	case len(more) == 3 && more[0] == "moveTo": // moveTo/o/NAME
		moved, err := s.put(more[2], q, attributes{ContentType: o.contentType, Metadata: o.metadata}, o.content)
		if err == nil {
			delete(s.objects, name)
		}
		return moved, err
	}
	return nil, failure{http.StatusNotImplemented, "the simulation has no " + r.Method + " " + strings.Join(more, "/")}
}

// download answers with the content of an object, or with the range of it that the client asks for.
func (s *Server) download(w http.ResponseWriter, r *http.Request, name string) error {
	o, ok := s.objects[name]
	if !ok || !current(r.URL.Query().Get("generation"), o) {
		return notFound
	}
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	w.Header().Set("X-Goog-Metageneration", strconv.FormatInt(o.metageneration, 10))
	w.Header().Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(o.content)))
	w.Header().Set("X-Goog-Hash", "crc32c="+checksum(o.content))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", o.updated, bytes.NewReader(o.content))
	return nil
}
