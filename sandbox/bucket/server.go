// Package bucket serves buckets like Cloud Storage does, for the clients of its JSON and XML
// interfaces on this machine. It keeps objects in memory.
//
// It is never kinder than Cloud Storage: it allows one write a second to a name, an upload becomes an
// object only when it is complete, a precondition that does not hold fails, and a chunk that comes twice
// counts once (https://cloud.google.com/storage/quotas, .../docs/resumable-uploads).
package bucket

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
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

// Server has the buckets. Its zero value has none.
type Server struct {
	mu         sync.Mutex
	buckets    map[string]map[string]*object
	uploads    map[string]*upload
	written    map[string]time.Time // when each object was last written, by bucket and name
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
	bucket, name string
	query        url.Values
	attributes   attributes
	content      []byte
}

// attributes are what a client says of an object.
type attributes struct {
	Name        string            `json:"name"`
	ContentType string            `json:"contentType"`
	Metadata    map[string]string `json:"metadata"`
	CRC32C      string            `json:"crc32c"`
}

// Fault makes the server fail requests, or answer them late.
type Fault struct {
	// Method and Name select the requests: an HTTP method, and a part of the object's name. Empty
	// texts select all.
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

// Create creates an empty bucket.
func (s *Server) Create(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets == nil {
		s.buckets, s.uploads, s.written = map[string]map[string]*object{}, map[string]*upload{}, map[string]time.Time{}
	}
	s.buckets[name] = map[string]*object{}
}

// Inject makes requests fail from now on.
func (s *Server) Inject(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Content returns the content of an object, and whether it exists.
func (s *Server) Content(bucket, name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.buckets[bucket][name]
	if !ok {
		return nil, false
	}
	return o.content, true
}

// fault takes the next fault for a request.
func (s *Server) fault(r *http.Request) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		name := r.URL.Path + " " + r.URL.Query().Get("name")
		if u, ok := s.uploads[r.URL.Query().Get("upload_id")]; ok {
			name += " " + u.name
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
			answer(w, nil, failure{f.Status, "backendError"})
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
	q := r.URL.Query()
	switch at := strings.Join(path[:min(3, len(path))], "/"); {
	case at == "upload/storage/v1" && len(path) == 6 && q.Has("upload_id"):
		s.resume(w, r, body)
	case at == "upload/storage/v1" && len(path) == 6:
		s.begin(w, r, path[4], body)
	case at == "storage/v1/b" && len(path) == 5:
		s.list(w, path[3], q)
	case at == "storage/v1/b" && len(path) >= 6:
		s.object(w, r, path[3], path[5], path[6:])
	default:
		s.download(w, r, path[0], strings.Join(path[1:], "/"))
	}
}

// answer writes a value as JSON, or an error.
func answer(w http.ResponseWriter, value any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		f := err.(failure)
		w.WriteHeader(f.status)
		value = map[string]any{"error": map[string]any{
			"code": f.status, "message": f.reason, "errors": []any{map[string]string{"reason": f.reason, "message": f.reason}},
		}}
	}
	json.NewEncoder(w).Encode(value)
}

// resource returns an object as the JSON interface describes it.
func resource(bucket, name string, o *object) map[string]any {
	sum := md5.Sum(o.content)
	return map[string]any{
		"kind": "storage#object", "bucket": bucket, "name": name, "id": fmt.Sprintf("%s/%s/%d", bucket, name, o.generation),
		"generation": strconv.FormatInt(o.generation, 10), "metageneration": strconv.FormatInt(o.metageneration, 10),
		"size": strconv.Itoa(len(o.content)), "contentType": o.contentType, "metadata": o.metadata, "storageClass": "STANDARD",
		"updated": o.updated.Format(time.RFC3339Nano), "timeCreated": o.updated.Format(time.RFC3339Nano),
		"md5Hash": base64.StdEncoding.EncodeToString(sum[:]), "crc32c": checksum(o.content),
	}
}

func checksum(content []byte) string {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// list answers with the objects below a prefix, and with the next level of folders if the query has a
// delimiter (https://cloud.google.com/storage/docs/json_api/v1/objects/list).
func (s *Server) list(w http.ResponseWriter, bucket string, q url.Values) {
	objects, ok := s.buckets[bucket]
	if !ok {
		answer(w, nil, notFound)
		return
	}
	most := 1000
	if n, err := strconv.Atoi(q.Get("maxResults")); err == nil && n > 0 {
		most = min(most, n)
	}
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	items, prefixes, next := []any{}, []string{}, ""
	for _, name := range names {
		rest, below := strings.CutPrefix(name, prefix)
		if !below || name < q.Get("startOffset") || name <= q.Get("pageToken") || q.Get("endOffset") != "" && name >= q.Get("endOffset") {
			continue
		}
		if folder, _, deeper := strings.Cut(rest, delimiter); delimiter != "" && deeper {
			folder = prefix + folder + delimiter
			// A page ends behind a whole folder.
			if strings.HasPrefix(q.Get("pageToken"), folder) {
				continue
			}
			if !slices.Contains(prefixes, folder) {
				if len(items)+len(prefixes) == most {
					break
				}
				prefixes = append(prefixes, folder)
			}
			next = name
			if name != folder || q.Get("includeTrailingDelimiter") != "true" {
				continue
			}
		}
		if len(items)+len(prefixes) == most {
			break
		}
		items, next = append(items, resource(bucket, name, objects[name])), name
	}
	page := map[string]any{"kind": "storage#objects", "items": items, "prefixes": prefixes}
	if len(items)+len(prefixes) == most {
		page["nextPageToken"] = next
	}
	answer(w, page, nil)
}

// conditions reports which precondition of a query an object, or nil, does not meet. which is "" or
// Source.
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

// put writes an object whole.
func (s *Server) put(bucket, name string, q url.Values, a attributes, content []byte) (*object, error) {
	objects, ok := s.buckets[bucket]
	if !ok {
		return nil, notFound
	}
	if err := conditions(q, "", objects[name]); err != nil {
		return nil, err
	}
	if a.CRC32C != "" && a.CRC32C != checksum(content) {
		return nil, failure{http.StatusBadRequest, "invalid"}
	}
	key := bucket + "/" + name
	if time.Since(s.written[key]) < betweenWrites {
		return nil, tooManyTimes
	}
	s.written[key] = time.Now()
	s.generation = max(s.generation+1, time.Now().UnixMicro())
	objects[name] = &object{content, s.generation, 1, time.Now().UTC(), a.ContentType, a.Metadata}
	return objects[name], nil
}

// begin answers an upload in one request, or the first request of a resumable one.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, bucket string, body []byte) {
	q := r.URL.Query()
	if q.Get("uploadType") == "resumable" {
		u := &upload{bucket: bucket, name: q.Get("name"), query: q}
		json.Unmarshal(body, &u.attributes)
		if u.name == "" {
			u.name = u.attributes.Name
		}
		if err := conditions(q, "", s.buckets[bucket][u.name]); err != nil {
			answer(w, nil, err)
			return
		}
		s.generation++
		id := strconv.FormatInt(s.generation, 36)
		s.uploads[id] = u
		w.Header().Set("Location", fmt.Sprintf("http://%s/upload/storage/v1/b/%s/o?uploadType=resumable&upload_id=%s", r.Host, bucket, id))
		answer(w, map[string]any{}, nil)
		return
	}
	var a attributes
	var content []byte
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	parts := multipart.NewReader(strings.NewReader(string(body)), parameters["boundary"])
	for i := 0; i < 2 && err == nil; i++ {
		var part *multipart.Part
		if part, err = parts.NextPart(); err != nil {
			break
		}
		if i == 0 {
			err = json.NewDecoder(part).Decode(&a)
		} else {
			content, err = io.ReadAll(part)
		}
	}
	if err != nil {
		answer(w, nil, failure{http.StatusBadRequest, err.Error()})
		return
	}
	name := q.Get("name")
	if name == "" {
		name = a.Name
	}
	o, err := s.put(bucket, name, q, a, content)
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, resource(bucket, name, o), nil)
}

// resume takes the next chunk of a resumable upload: "bytes FIRST-LAST/TOTAL", or "bytes */TOTAL", where
// TOTAL is * until the client knows it. Only the chunk that reaches TOTAL makes an object.
func (s *Server) resume(w http.ResponseWriter, r *http.Request, body []byte) {
	id := r.URL.Query().Get("upload_id")
	u, ok := s.uploads[id]
	if !ok {
		answer(w, nil, notFound)
		return
	}
	if r.Method == http.MethodDelete {
		delete(s.uploads, id)
		w.WriteHeader(499)
		return
	}
	place, total, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	if first, _, ok := strings.Cut(place, "-"); ok {
		at, err := strconv.Atoi(first)
		if err != nil || at > len(u.content) {
			answer(w, nil, failure{http.StatusBadRequest, "invalid range"})
			return
		}
		if end := at + len(body); end > len(u.content) {
			u.content = append(u.content, body[len(u.content)-at:]...)
		}
	}
	if r.Header.Get("Content-Range") == "" {
		u.content, total = body, strconv.Itoa(len(body))
	}
	if n, err := strconv.Atoi(total); err != nil || n != len(u.content) {
		if len(u.content) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.content)-1))
		}
		// Go's client asks for 200 in place of 308, which net/http would take for a redirection.
		if r.Header.Get("X-GUploader-No-308") != "" {
			w.Header().Set("X-Http-Status-Code-Override", "308")
			return
		}
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	o, err := s.put(u.bucket, u.name, u.query, u.attributes, u.content)
	if err != nil {
		answer(w, nil, err)
		return
	}
	delete(s.uploads, id)
	answer(w, resource(u.bucket, u.name, o), nil)
}

// object answers what a client asks of one object.
func (s *Server) object(w http.ResponseWriter, r *http.Request, bucket, name string, more []string) {
	q := r.URL.Query()
	o, ok := s.buckets[bucket][name]
	ok = ok && current(q.Get("generation"), o)
	if !ok {
		answer(w, nil, notFound)
		return
	}
	which := ""
	if len(more) > 0 {
		which = "Source"
	}
	if err := conditions(q, which, o); err != nil {
		answer(w, nil, err)
		return
	}
	switch {
	case r.Method == http.MethodGet && q.Get("alt") == "media":
		s.download(w, r, bucket, name)
	case r.Method == http.MethodGet:
		answer(w, resource(bucket, name, o), nil)
	case r.Method == http.MethodDelete:
		delete(s.buckets[bucket], name)
		w.WriteHeader(http.StatusNoContent)
	case len(more) == 3 && more[0] == "moveTo": // moveTo/o/NAME
		moved, err := s.put(bucket, more[2], q, attributes{ContentType: o.contentType, Metadata: o.metadata}, o.content)
		if err != nil {
			answer(w, nil, err)
			return
		}
		delete(s.buckets[bucket], name)
		answer(w, resource(bucket, more[2], moved), nil)
	default:
		answer(w, nil, failure{http.StatusNotImplemented, "the simulation has no " + r.Method + " " + strings.Join(more, "/")})
	}
}

// download answers with the content of an object, or with the range of it that the client asks for.
func (s *Server) download(w http.ResponseWriter, r *http.Request, bucket, name string) {
	o, ok := s.buckets[bucket][name]
	if !ok || !current(r.URL.Query().Get("generation"), o) {
		answer(w, nil, notFound)
		return
	}
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	w.Header().Set("X-Goog-Metageneration", strconv.FormatInt(o.metageneration, 10))
	w.Header().Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(o.content)))
	w.Header().Set("X-Goog-Hash", "crc32c="+checksum(o.content))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", o.updated, strings.NewReader(string(o.content)))
}
