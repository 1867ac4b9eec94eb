package google

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"persia/sandbox/gcp/google/merge"
)

//go:embed answers.json
var answersJSON []byte

// Recorded is one recorded answer with the request before it, if there is one.
type Recorded struct {
	// Origin is "real" for Google Cloud and "mock" for Config Connector's mock.
	Origin  string `json:"origin"`
	Request Body   `json:"request"`
	Get     Body   `json:"get"`
}

var answers = sync.OnceValue(func() (all struct {
	Resources map[string]Recorded `json:"resources"`
	Errors    map[string]struct {
		Error Error `json:"error"`
	} `json:"errors"`
}) {
	if err := json.Unmarshal(answersJSON, &all); err != nil {
		panic(fmt.Errorf("answers.json: %w", err))
	}
	return all
})

// Answers returns all that is recorded, by name.
func Answers() map[string]Recorded { return answers().Resources }

// serverSet returns the fields that a service set by itself in a recorded answer, without
// placeholders.
func serverSet(name string) Body {
	recorded, known := answers().Resources[name]
	if !known {
		panic("answers.json has no " + name)
	}
	return withoutPlaceholders(merge.Beyond(Clone(recorded.Get), recorded.Request))
}

// withoutPlaceholders leaves out texts that hold a placeholder: they depend on the
// resource.
func withoutPlaceholders(body Body) Body {
	for name, value := range body {
		switch value := value.(type) {
		case string:
			if strings.Contains(value, "${") {
				delete(body, name)
			}
		case Body:
			withoutPlaceholders(value)
		}
	}
	return body
}

// Error is a refusal as Google's APIs give it.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Reason  string `json:"-"`
	Errors  []struct {
		Reason string `json:"reason"`
	} `json:"errors"`
}

func (e *Error) Error() string {
	reason := e.Reason
	if len(e.Errors) > 0 {
		reason = e.Errors[0].Reason
	}
	message := fmt.Sprintf("googleapi: Error %d: %s", e.Code, e.Message)
	if reason != "" {
		message += ", " + reason
	}
	return message
}

// recordedError is a recorded refusal with its placeholders filled in.
func recordedError(name string, values map[string]string) error {
	recorded := answers().Errors[name].Error
	recorded.Message = os.Expand(recorded.Message, func(key string) string { return values[key] })
	return &recorded
}

// refuse is a refusal with a message that is not recorded†.
func refuse(code int, reason, format string, args ...any) error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
