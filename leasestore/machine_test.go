package leasestore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/leasestore"
)

// model is what the rules say of one job: who owns it, and whether the clock
// has passed its lease. Authorities are kept for ever, to be presented again.
type model struct {
	fixture
	job     leasestore.Job
	status  leasestore.Status
	owner   leasestore.Authority // zero if nobody owns it
	expired bool
	epoch   int64
	attempt int64
	offers  int64
	known   []leasestore.Authority // all that were ever handed out, and their later turns
	ended   map[leasestore.Token]string
	last    leasestore.ClaimRequest
	granted leasestore.Token // by the last claim
}

// However the verbs follow each other, the store says of each authority what the
// model says, and no two ownerships share an epoch or a token.
func TestTheVerbsFollowTheirModel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	def := heartbeats("probe", 0)
	def.MaxAttempts, def.Backoff = 4, 1
	f.apply(def)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{fixture: f, job: f.pending("probe"), status: leasestore.Pending, ended: map[leasestore.Token]string{}}
		rt.Repeat(map[string]func(*rapid.T){
			"dispatch": m.dispatch, "claim": m.claimIt, "claim again": m.claimAgain, "expire": m.expireIt,
			"prove": m.prove, "renew": m.renew, "renew all": m.renewAll, "end": m.end, "recover": m.recover, "": m.holds,
		})
	})
}

func (m *model) holds(rt *rapid.T) {
	job := try(m.Job(m.t.Context(), m.job.ID)).or(m.t)
	if job.Status != m.status || job.Epoch != m.epoch || job.Attempt != m.attempt || job.DispatchAttempt != m.offers {
		rt.Fatalf("the job is %s at epoch %d, attempt %d, offer %d; the model %s, %d, %d, %d",
			job.Status, job.Epoch, job.Attempt, job.DispatchAttempt, m.status, m.epoch, m.attempt, m.offers)
	}
	for _, auth := range m.known {
		report := try(m.Reconcile(m.t.Context(), []leasestore.Authority{auth})).or(m.t)[0]
		mine := auth.Token == m.owner.Token && auth.Holder == m.owner.Holder
		if live := mine && !m.expired; (report.State == leasestore.ClaimLive) != live || report.Recorded != m.ended[auth.Token] {
			rt.Fatalf("epoch %d is reported %s, recorded %q; the model says live %t, recorded %q",
				auth.Epoch, report.State, report.Recorded, live, m.ended[auth.Token])
		}
	}
}

func (m *model) dispatch(rt *rapid.T) {
	m.exec(`update leasehold.job set next_attempt_at = clock_timestamp() where id = $1`, m.job.ID)
	_, err := m.Dispatch(m.t.Context(), m.job.ID, m.offers)
	switch {
	case (err == nil) != (m.status == leasestore.Pending):
		rt.Fatalf("dispatch of a %s job: %v", m.status, err)
	case err == nil:
		m.status, m.offers = leasestore.Queued, m.offers+1
	}
}

func (m *model) claimIt(rt *rapid.T) {
	offered := m.job
	offered.DispatchAttempt = m.offers - int64(rapid.IntRange(0, 1).Draw(rt, "stale"))
	r := request(offered, rapid.SampledFrom([]leasestore.Holder{alice, bob}).Draw(rt, "holder"))
	lease, err := m.Claim(m.t.Context(), r)
	if want := m.status == leasestore.Queued && offered.DispatchAttempt == m.offers; (err == nil) != want {
		rt.Fatalf("claim of a %s job: %v", m.status, err)
	}
	if err == nil {
		m.last, m.granted = r, lease.Token
		m.attempt++
		m.owns(rt, lease)
	}
}

func (m *model) claimAgain(rt *rapid.T) {
	if m.last.RequestID == uuid.Nil {
		return
	}
	lease, err := m.Claim(m.t.Context(), m.last)
	still := m.owner.Token == m.granted && m.owner.Token != (leasestore.Token{}) && m.owner.Holder == m.last.Holder && !m.expired
	if (err == nil) != still || still && lease.Token != m.granted {
		rt.Fatalf("the same claim again: %v; the model says live %t", err, still)
	}
}

// owns takes a new ownership into the model.
func (m *model) owns(rt *rapid.T, lease leasestore.Lease) {
	if lease.Epoch != m.epoch+1 || slices.ContainsFunc(m.known, func(a leasestore.Authority) bool { return a.Token == lease.Token }) {
		rt.Fatalf("epoch %d follows %d, or its token is an old one", lease.Epoch, m.epoch)
	}
	m.status, m.owner, m.expired, m.epoch = leasestore.Running, lease.Authority, false, lease.Epoch
	m.known = append(m.known, lease.Authority)
}

func (m *model) expireIt(*rapid.T) {
	if m.status == leasestore.Running {
		m.fixture.expire(m.job.ID)
		m.expired = true
	}
}

// presented draws an authority: a known one as it was, or in another turn.
func (m *model) presented(rt *rapid.T) (leasestore.Authority, bool) {
	if len(m.known) == 0 {
		return leasestore.Authority{}, false
	}
	auth := rapid.SampledFrom(m.known).Draw(rt, "authority")
	if rapid.Bool().Draw(rt, "another turn") {
		auth = auth.By(rapid.SampledFrom([]leasestore.Holder{alice, bob}).Draw(rt, "by"), turn1+int64(rapid.IntRange(0, 2).Draw(rt, "turn")))
	}
	return auth, true
}

func (m *model) good(a leasestore.Authority) bool {
	return a.Token == m.owner.Token && !m.expired && (a.Turn > m.owner.Turn || a.Turn == m.owner.Turn && a.Holder == m.owner.Holder)
}

func (m *model) prove(rt *rapid.T) {
	auth, ok := m.presented(rt)
	if !ok {
		return
	}
	_, err := m.Prove(m.t.Context(), auth, ttl)
	if (err == nil) != m.good(auth) {
		rt.Fatalf("prove: %v; the model says %t", err, m.good(auth))
	}
	if err == nil {
		m.owner = auth
		m.known = append(m.known, auth)
	}
}

func (m *model) renew(rt *rapid.T) {
	auth, ok := m.presented(rt)
	if !ok {
		return
	}
	_, err := m.Renew(m.t.Context(), auth, ttl)
	if want := m.good(auth) && auth.Turn == m.owner.Turn; (err == nil) != want {
		rt.Fatalf("renew: %v; the model says %t", err, want)
	}
	if err != nil {
		lost, isLost := errors.AsType[*leasestore.LostError](err)
		if isLost && m.reason(auth) != lost.Reason {
			rt.Fatalf("lost as %s; the model says %s", lost.Reason, m.reason(auth))
		}
	}
}

func (m *model) reason(a leasestore.Authority) leasestore.LostReason {
	switch {
	case a.Token != m.owner.Token:
		return leasestore.OwnerChanged
	case m.expired:
		return leasestore.Expired
	}
	return leasestore.Superseded
}

func (m *model) renewAll(rt *rapid.T) {
	if len(m.known) == 0 {
		return
	}
	for i, answer := range try(m.RenewAll(m.t.Context(), m.known, ttl)).or(m.t) {
		if want := m.known[i] == m.owner && !m.expired; answer.Renewed != want || answer.Busy {
			rt.Fatalf("renewed %t, busy %t; the model says %t", answer.Renewed, answer.Busy, want)
		}
	}
}

func (m *model) end(rt *rapid.T) {
	auth, ok := m.presented(rt)
	if !ok {
		return
	}
	var job leasestore.Job
	var err error
	var status leasestore.Status
	var recorded string
	switch verb := rapid.SampledFrom([]string{"complete", "fail", "cancel", "release", "release"}).Draw(rt, "verb"); verb {
	case "complete":
		job, err = m.Complete(m.t.Context(), auth, leasestore.Outcome{})
		status, recorded = leasestore.Completed, "COMPLETED"
	case "fail":
		job, err = m.Fail(m.t.Context(), auth, boom)
		status, recorded = leasestore.Failed, "FAILED/USER/EXIT_CODE/3"
	case "cancel":
		job, err = m.Cancel(m.t.Context(), auth, leasestore.Outcome{})
		status, recorded = leasestore.Canceled, "CANCELED"
	case "release":
		job, err = m.Release(m.t.Context(), auth, lost, false)
		status, recorded = leasestore.Pending, "RELEASED/SYSTEM/LEASE_LOST"
		if m.attempt == 4 {
			status = leasestore.Failed
		}
	}
	good, again := m.good(auth), m.ended[auth.Token] == recorded
	if (err == nil) != (good || again) {
		rt.Fatalf("%s: %v; the model says good %t, confirmed %t", recorded, err, good, again)
	}
	if ended, is := errors.AsType[*leasestore.EndedError](err); is && ended.Recorded != m.ended[auth.Token] {
		rt.Fatalf("refused as %v; the model says %s", ended, m.ended[auth.Token])
	}
	if good {
		m.status, m.owner, m.ended[auth.Token] = status, leasestore.Authority{}, recorded
		if job.Status != status {
			rt.Fatalf("%s made it %s", recorded, job.Status)
		}
	}
}

func (m *model) recover(rt *rapid.T) {
	taken := m.status == leasestore.Running && m.expired
	for _, r := range try(m.Recover(m.t.Context(), recovery(bob, 1000))).or(m.t) {
		if r.Job.ID != m.job.ID {
			continue // left by an earlier run
		}
		if !taken {
			rt.Fatal(fmt.Sprintf("recovered a %s job", m.status))
		}
		taken = false
		if r.GivenUp {
			m.status, m.owner, m.epoch = leasestore.Failed, leasestore.Authority{}, m.epoch+1
			continue
		}
		m.owns(rt, r.Lease)
	}
	if taken {
		rt.Fatal("an expired lease was not recovered")
	}
}
