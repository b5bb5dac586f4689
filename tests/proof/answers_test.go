package proof

import (
	"errors"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof/model"
)

// endings are how the ledger's outcome of a verb begins.
var endings = map[model.Verb]string{
	model.Complete: "COMPLETED", model.Fail: "FAILED", model.Cancel: "CANCELED", model.Release: "RELEASED",
}

// refusedAs is a refusal of the store as the model's answer.
func refusedAs(err error) (model.Answer, bool) {
	if lost, ok := errors.AsType[*leasestore.LostError](err); ok {
		reasons := map[leasestore.LostReason]model.Answer{
			leasestore.Expired: model.Expired, leasestore.Superseded: model.Superseded, leasestore.OwnerChanged: model.OwnerGone,
		}
		answer, known := reasons[lost.Reason]
		return answer, known
	}
	if _, ok := errors.AsType[*leasestore.EndedError](err); ok {
		return model.EndedAs, true
	}
	if _, ok := errors.AsType[*leasestore.NotEligibleError](err); ok {
		return model.Ineligible, true
	}
	if _, ok := errors.AsType[*leasestore.ConflictError](err); ok {
		return model.Conflict, true
	}
	if _, ok := errors.AsType[*leasestore.InvalidError](err); ok {
		return model.Unproven, true // the only invalid thing that the workload sends
	}
	return 0, false
}

func isUnknown(err error) bool {
	_, ok := errors.AsType[*leasestore.UnknownError](err)
	return ok
}

// refusals are the endings that callers saw refused.
func refusals(records []record) []Refusal {
	var seen []Refusal
	for _, r := range records {
		if answer, refused := refusedAs(r.err); refused && answer != model.Unproven && r.verb.Ends() {
			seen = append(seen, Refusal{r.job, r.auth.Epoch, r.auth.Process, r.auth.Turn})
		}
	}
	return seen
}
