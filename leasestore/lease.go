package leasestore

import "time"

// Lease is what PostgreSQL answers about an ownership: until when, where the
// container is, and the authority to act.
type Lease struct {
	Authority
	Definition  string    `db:"definition"   json:"definition"`
	NodeID      string    `db:"node_id"      json:"node_id,omitempty"` // empty for HEARTBEAT
	Endpoint    string    `db:"endpoint"     json:"endpoint,omitempty"`
	ContainerID string    `db:"container_id" json:"container_id,omitempty"` // empty until attached
	GrantedAt   time.Time `db:"granted_at"   json:"granted_at"`             // the database's clock
	ExpiresAt   time.Time `db:"expires_at"   json:"expires_at"`             // the database's clock: show it, never compare it
	// Remaining is the time left when the database decided.
	Remaining time.Duration `db:"remaining" json:"remaining"`
	// Deadline is when the holder must stop by its own monotonic clock:
	// Remaining counted from before the request was sent. It means nothing in
	// another process.
	Deadline time.Time `db:"-" json:"-"`
}

// since sets the local deadline, counted from the moment before the request.
func (l Lease) since(sent time.Time) Lease {
	l.Deadline = sent.Add(l.Remaining)
	return l
}

// leaseColumns are a Lease's columns, from lease l left join runtime_node n.
// shownColumns are the same without the token, for who may not read it.
const (
	leaseColumns = `
       l.token,` + placeColumns
	shownColumns = `
       null::uuid as token,` + placeColumns
	placeColumns = `
       l.job_id, l.generation, l.epoch, l.worker, l.process, l.turn, l.definition,
       coalesce(l.node_id, '') as node_id, coalesce(n.endpoint, '') as endpoint,
       coalesce(l.container_id, '') as container_id, l.granted_at, l.expires_at,
       l.expires_at - clock_timestamp() as remaining`
)
