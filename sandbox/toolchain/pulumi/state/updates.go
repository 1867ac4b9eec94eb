package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// idle refuses what cannot be done during an update.
func (s store) idle() error {
	current, err := s.current()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return &apitype.ErrorResponse{
		Code:    http.StatusConflict,
		Message: fmt.Sprintf("Conflict: the update %s is under way; `pulumi cancel` ends one that was killed", current.ID),
	}
}

// createUpdate names an update. It takes effect once it is started.
func createUpdate(*http.Request, store) (any, error) {
	return apitype.UpdateProgramResponse{UpdateID: rand.Text()}, nil
}

// startUpdate starts an update. A preview changes nothing, and so is none.
func startUpdate(r *http.Request, s store) (any, error) {
	var request apitype.StartUpdateRequest
	if err := body(r, &request); err != nil {
		return nil, err
	}
	var stack apitype.Stack
	if err := s.read(stackFile, &stack); err != nil {
		return nil, err
	}
	response := apitype.StartUpdateResponse{
		Version:        stack.Version,
		Token:          token(r),
		JournalVersion: journalVersion,
	}
	if r.PathValue("kind") == "preview" {
		return response, nil
	}
	if request.JournalVersion < journalVersion {
		return nil, &apitype.ErrorResponse{
			Code:    http.StatusBadRequest,
			Message: "Bad Request: only a journal is stored; unset PULUMI_DISABLE_JOURNALING",
		}
	}
	if err := s.idle(); err != nil {
		return nil, err
	}
	stack.Version++
	response.Version = stack.Version
	begun := update{ID: r.PathValue("update"), Info: apitype.UpdateInfo{
		Kind:      apitype.UpdateKind(r.PathValue("kind")),
		Version:   stack.Version,
		StartTime: time.Now().Unix(),
	}}
	if err := s.begin(begun); err != nil {
		return nil, err
	}
	return response, s.write(stackFile, stack)
}

// updateStatus returns the status of an import, the only update whose status the CLI asks for. An
// import is over when its request is answered.
func updateStatus(*http.Request, store) (any, error) {
	return apitype.UpdateResults{Status: apitype.StatusSucceeded}, nil
}

// underWay refuses what does not belong to the update under way: a CLI that was
// thought dead must not write. The end of a preview ends nothing.
func underWay(do answer) answer {
	return func(r *http.Request, s store) (any, error) {
		if r.PathValue("kind") == "preview" {
			return struct{}{}, nil
		}
		current, err := s.current()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if id := r.PathValue("update"); id != current.ID {
			return nil, &apitype.ErrorResponse{
				Code:    http.StatusConflict,
				Message: fmt.Sprintf("Conflict: the update %s is not under way any more", id),
			}
		}
		return do(r, s)
	}
}

func addEntries(r *http.Request, s store) (any, error) {
	var entries apitype.JournalEntries
	if err := body(r, &entries); err != nil {
		return nil, err
	}
	return struct{}{}, s.add(entries.Entries)
}

func renewLease(r *http.Request, _ store) (any, error) {
	return apitype.RenewUpdateLeaseResponse{Token: token(r)}, nil
}

// addEvents keeps of the engine's events the summary, which comes before the end.
func addEvents(r *http.Request, s store) (any, error) {
	var batch apitype.EngineEventBatch
	if err := body(r, &batch); err != nil {
		return nil, err
	}
	for _, event := range batch.Events {
		if event.SummaryEvent == nil {
			continue
		}
		current, err := s.current()
		if err != nil {
			return nil, err
		}
		current.Info.ResourceChanges = event.SummaryEvent.ResourceChanges
		if err := s.write(updateFile, current); err != nil {
			return nil, err
		}
	}
	return struct{}{}, nil
}

func completeUpdate(r *http.Request, s store) (any, error) {
	var request apitype.CompleteUpdateRequest
	if err := body(r, &request); err != nil {
		return nil, err
	}
	return struct{}{}, s.end(apitype.UpdateResult(request.Status))
}

// cancelUpdate ends an update that was killed.
func cancelUpdate(_ *http.Request, s store) (any, error) {
	return struct{}{}, s.end(apitype.FailedResult)
}

// history is the last update.
func history(_ *http.Request, s store) (any, error) {
	var last apitype.UpdateInfo
	err := s.read(lastFile, &last)
	if errors.Is(err, fs.ErrNotExist) {
		return apitype.GetHistoryResponse{Updates: []apitype.UpdateInfo{}}, nil
	}
	return apitype.GetHistoryResponse{Updates: []apitype.UpdateInfo{last}}, err
}
