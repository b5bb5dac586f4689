package model

// Protocol is the lease protocol with its parameters and its faults.
type Protocol struct {
	Faults        Faults
	TTL           Time
	MaxAttempts   uint8
	MaxRecoveries uint8 // of one attempt
	Limit         uint8 // running jobs of the definition; 0 is no limit
}

// View is what a statement sees besides the locked row.
type View struct {
	Now     Time   // the clock that it judges by
	Running uint8  // jobs of the definition that run
	Epoch   uint16 // the job's, to count on from
}

// rule is what a holder's verb needs and does.
type rule struct {
	proven  bool   // needs exactly the turn that the lease is bound to
	extends bool   // moves the expiry to the TTL from now
	binds   bool   // binds the lease to the process and turn
	ends    Status // of the job afterwards; Pending is no end
	over    bool   // the lease is gone afterwards
}

var rules = [...]rule{
	Prove:    {extends: true, binds: true},
	Renew:    {extends: true, proven: true},
	Attach:   {extends: true, binds: true},
	Complete: {over: true, ends: Completed},
	Fail:     {over: true, ends: Failed},
	Cancel:   {over: true, ends: Canceled},
	Release:  {over: true}, // PENDING, or FAILED at the limit of attempts
}

// Holding says whether the verb acts on an authority.
func (v Verb) Holding() bool { return v >= Prove }

// Ends says whether the verb ends an ownership.
func (v Verb) Ends() bool { return v.Holding() && rules[v].over }

// Judge answers a statement by a row that it has locked. It writes nothing.
func (p Protocol) Judge(row Row, st Statement, v View) Answer {
	switch st.Verb {
	case Claim:
		return p.judgeClaim(row, st, v)
	case Recover:
		return p.judgeRecover(row, v)
	default:
		return p.judgeHolder(row, st, v)
	}
}

func (p Protocol) judgeClaim(row Row, st Statement, v View) Answer {
	switch {
	case row.Token != 0 && row.Request == st.Request && row.Dispatch == st.Dispatch && row.Holder == st.Actor && row.Expires > v.Now:
		return Replayed
	case row.Status != Queued || row.Dispatch != st.Dispatch:
		return Ineligible
	case p.Limit > 0 && v.Running >= p.Limit:
		return LimitHit
	}
	return Accepted
}

func (p Protocol) judgeRecover(row Row, v View) Answer {
	switch {
	case row.Token == 0 || row.Expires > v.Now:
		return NothingDue
	case row.Recoveries >= p.MaxRecoveries && !p.Faults.Has(RecoveryUncounted):
		return GivenUp
	}
	return Accepted
}

func (p Protocol) judgeHolder(row Row, st Statement, v View) Answer {
	blind := st.Verb == Complete && row.Status == Running && p.Faults.Has(CompleteWithoutToken)
	late := st.Verb == Renew && p.Faults.Has(RenewIgnoresExpiry)
	switch {
	case blind:
		return Accepted
	case row.Token != st.Token || row.Epoch != st.Epoch:
		return afterwards(row, st)
	case row.Expires <= v.Now && !late:
		return Expired
	case !p.Faults.Has(TurnIgnored) && (st.Turn < row.Turn || st.Turn == row.Turn && st.Actor != row.Holder):
		return Superseded
	case rules[st.Verb].proven && st.Turn != row.Turn && !p.Faults.Has(TurnIgnored):
		return Unproven
	case st.Verb == Attach && row.Container != 0 && row.Container != st.Container:
		return Conflict
	}
	return Accepted
}

// afterwards answers one whose lease is no longer there: the same ending made
// before is confirmed.
func afterwards(row Row, st Statement) Answer {
	switch {
	case row.EndedBy != st.Token || !st.Verb.Ends():
		return OwnerGone
	case row.Ending == st.Verb:
		return Confirmed
	}
	return EndedAs
}

// Apply is the row after a statement that was answered so; only answers that
// write change it.
func (p Protocol) Apply(row Row, st Statement, answer Answer, v View) Row {
	switch {
	case !answer.Writes():
		return row
	case answer == GivenUp:
		row.Epoch = v.Epoch + 1
		row.Recoveries++
		return row.without(Failed)
	case st.Verb == Claim:
		row.Status, row.Attempt, row.Recoveries = Running, row.Attempt+1, 0
		row.Container, row.Request = 0, st.Request
		return p.granted(row, st, v)
	case st.Verb == Recover:
		row.Recoveries, row.Request = row.Recoveries+1, 0
		if p.Faults.Has(RecoveryUncounted) {
			row.Recoveries = 0
		}
		return p.granted(row, st, v)
	}
	return p.held(row, st, v)
}

func (p Protocol) granted(row Row, st Statement, v View) Row {
	row.Epoch, row.Token = v.Epoch+1, st.Fresh
	row.Holder, row.Turn, row.Expires = st.Actor, st.Turn, v.Now+p.TTL
	return row
}

func (p Protocol) held(row Row, st Statement, v View) Row {
	do := rules[st.Verb]
	if do.over {
		end := do.ends
		if st.Verb == Release && row.Attempt >= p.MaxAttempts {
			end = Failed
		}
		row.EndedBy, row.Ending = st.Token, st.Verb
		return row.without(end)
	}
	if do.binds {
		row.Holder, row.Turn = st.Actor, st.Turn
	}
	if st.Verb == Attach {
		row.Container = st.Container
	}
	row.Expires = max(row.Expires, v.Now+p.TTL)
	return row
}

// without is the row with its lease gone.
func (r Row) without(status Status) Row {
	r.Status = status
	r.Token, r.Holder, r.Turn, r.Request, r.Container, r.Expires = 0, 0, 0, 0, 0, 0
	return r
}
