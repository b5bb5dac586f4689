package proof

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

var again = leasestore.Outcome{Failure: leasestore.Failure{Kind: leasestore.SystemFailure, Reason: "AGAIN", Message: "again"}}

// lived is a scene with a job that had every event in its life, a second one
// that runs, and a third that was withdrawn.
type lived struct {
	scene
	all, runs, withdrawn uuid.UUID
	refused              Refusal
}

func newLived(t *testing.T) lived {
	t.Helper()
	s := lived{scene: newScene(t, 2)}
	ctx, alice, bob := t.Context(), newHolder("alice"), newHolder("bob")
	job := s.queued()
	s.all = job.ID
	auth := try(s.Claim(ctx, lasting(claimOf(job, alice, 1)))).or(t).Authority
	auth = try(s.Prove(ctx, auth.By(bob, 2), long)).or(t).Authority
	job = s.dispatched(try(s.Release(ctx, auth, again, false)).or(t))
	old := try(s.Claim(ctx, claimOf(job, alice, 3))).or(t).Authority
	s.waitFor(`select expires_at <= clock_timestamp() from leasehold.lease`)
	recovery := recoveryBy(bob, 4)
	recovery.TTL = long
	next := try(s.Recover(ctx, recovery)).or(t)[0].Authority
	_, err := s.Complete(ctx, old, leasestore.Outcome{})
	if _, lost := errors.AsType[*leasestore.LostError](err); !lost {
		t.Fatalf("the old owner completed it: %v", err)
	}
	s.refused = Refusal{s.all, old.Epoch, old.Process, old.Turn}
	try(s.Complete(ctx, next, leasestore.Outcome{})).or(t)
	job = s.queued()
	s.runs = job.ID
	try(s.Claim(ctx, lasting(claimOf(job, alice, 5)))).or(t)
	s.withdrawn = s.queued().ID
	try(s.Withdraw(ctx, s.withdrawn, again.Failure)).or(t)
	return s
}

func TestAnHonestLedgerIsFoundSound(t *testing.T) {
	t.Parallel()
	s := newLived(t)
	for _, violation := range s.checked(s.refused) {
		t.Error(violation)
	}
}

// Each forgery is of one life, and breaks the promise that it is about.
// $1 is the job with every event, $2 the one that runs.
var forgeries = map[string]struct {
	sql    string
	breaks Rule
}{
	"an epoch granted twice":             {`update leasehold.ledger set epoch = 2 where job_id = $1 and event in ('RECOVERED', 'COMPLETED')`, Verified},
	"a recovery before the expiry":       {`update leasehold.ledger set until = until + interval '1 s' where job_id = $1 and event = 'CLAIMED' and epoch = 2`, NoOverlap},
	"a claim of an owned job":            {`delete from leasehold.ledger where job_id = $1 and event = 'RELEASED'`, Verified},
	"a recovery of what nobody owned":    {`delete from leasehold.ledger where job_id = $1 and event = 'CLAIMED' and epoch = 2`, Verified},
	"an end by the old owner":            {`update leasehold.ledger set epoch = 2 where job_id = $1 and event = 'COMPLETED'`, OnlyTheOwner},
	"an end in a turn that was over":     {`update leasehold.ledger set turn = 1 where job_id = $1 and event = 'RELEASED'`, OnlyTheOwner},
	"an end by another process":          {`update leasehold.ledger set process = gen_random_uuid() where job_id = $1 and event = 'RELEASED'`, OnlyTheOwner},
	"a take-over in an earlier turn":     {`update leasehold.ledger set turn = 0 where job_id = $1 and event = 'TAKEN_OVER'`, OnlyTheOwner},
	"a take-over that shortens":          {`update leasehold.ledger set until = at where job_id = $1 and event = 'TAKEN_OVER'`, NoOverlap},
	"an end without a token":             {`update leasehold.ledger set token = null where job_id = $1 and event = 'COMPLETED'`, TokensDie},
	"a token used twice":                 {`update leasehold.ledger set token = (select token from leasehold.ledger where event = 'RELEASED') where job_id = $1 and event = 'COMPLETED'`, TokensDie},
	"a second end":                       {`insert into leasehold.ledger (job_id, epoch, event, at, token) select $1, 3, 'FAILED', clock_timestamp(), gen_random_uuid()`, EndsOnce},
	"a claim after the end":              {`insert into leasehold.ledger (job_id, epoch, event, at, until) select $1, 4, 'CLAIMED', clock_timestamp(), clock_timestamp()`, EndsOnce},
	"a decision before the one in front": {`update leasehold.ledger set at = at - interval '1 hour' where job_id = $1 and event = 'COMPLETED'`, Verified},
	"a refusal that was taken out":       {`delete from leasehold.ledger where job_id = $1 and event = 'REFUSED'`, RefusalsAreKept},
	"a refusal without its outcome":      {`update leasehold.ledger set outcome = '' where job_id = $1 and event = 'REFUSED'`, RefusalsAreKept},
	"more attempts than may":             {`update leasehold.job set attempt = max_attempts + 1 where id = $1`, AttemptsBounded},
	"recoveries without end": {`insert into leasehold.ledger (job_id, epoch, event, at, until, process)
	                            select $2, 1 + n, 'RECOVERED', clock_timestamp() + n * interval '1 day', clock_timestamp() + n * interval '1 day', gen_random_uuid()
	                              from generate_series(1, 12) n`, AttemptsBounded},
	"attempts that nobody claimed":  {`update leasehold.job set attempt = 9 where id = $1`, RowsAgree},
	"an end that was changed":       {`update leasehold.job set status = 'FAILED' where id = $1`, RowsAgree},
	"an end at another time":        {`update leasehold.job set ended_at = ended_at + interval '1 us' where id = $1`, RowsAgree},
	"a job brought back to life":    {`update leasehold.job set status = 'PENDING', ended_at = null where id = $1`, RowsAgree},
	"an epoch that nobody granted":  {`update leasehold.job set epoch = 7 where id = $1`, RowsAgree},
	"a lease of another epoch":      {`update leasehold.lease set epoch = 9 where job_id = $2`, RowsAgree},
	"a lease of another process":    {`update leasehold.lease set process = gen_random_uuid() where job_id = $2`, RowsAgree},
	"a lease that was shortened":    {`update leasehold.lease set expires_at = expires_at - interval '1 s' where job_id = $2`, RowsAgree},
	"a lease that was taken out":    {`delete from leasehold.lease where job_id = $2`, RowsAgree},
	"a running job of no ownership": {`delete from leasehold.ledger where job_id = $2`, RowsAgree},
	"a job that was taken out":      {`update leasehold.ledger set job_id = gen_random_uuid() where job_id = $2`, RowsAgree},
	"one more running than there may": {`update leasehold.definition set max_running = 1;
	                                    update leasehold.ledger set at = (select min(at) from leasehold.ledger where job_id = $1) where job_id = $2`, LimitHolds},
}

func TestEveryForgeryIsFound(t *testing.T) {
	t.Parallel()
	s := newLived(t)
	for name, forgery := range forgeries {
		t.Run(name, func(t *testing.T) {
			found := s.forged(forgery.sql)
			for _, violation := range found {
				if violation.Rule == forgery.breaks {
					return
				}
			}
			t.Errorf("nothing says that it breaks %q: %v", forgery.breaks, found)
		})
	}
}

// forged is what is found in a transaction that forges and is rolled back.
func (s lived) forged(sql string) []Violation {
	s.t.Helper()
	tx := try(s.pool.Begin(s.t.Context())).or(s.t)
	defer tx.Rollback(s.t.Context())
	sql = strings.NewReplacer("$1", "'"+s.all.String()+"'", "$2", "'"+s.runs.String()+"'").Replace(sql)
	for statement := range strings.SplitSeq(sql, ";") {
		if done := try(tx.Exec(s.t.Context(), statement)).or(s.t); done.RowsAffected() == 0 {
			s.t.Fatalf("it forges nothing: %s", statement)
		}
	}
	return try(read(s.t.Context(), tx)).or(s.t).violations([]Refusal{s.refused})
}
