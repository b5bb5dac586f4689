package leasestore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// NodeState is whether a runtime node takes jobs.
type NodeState string

// The states of a node.
const (
	Ready     NodeState = "READY"
	Draining  NodeState = "DRAINING" // runs what it has, takes nothing new
	Unhealthy NodeState = "UNHEALTHY"
)

// Node is a Docker daemon that may run containers.
type Node struct {
	ID       string            `db:"id"       json:"id"`
	Endpoint string            `db:"endpoint" json:"endpoint"`
	State    NodeState         `db:"state"    json:"state"`
	Capacity int64             `db:"capacity" json:"capacity"` // containers at once, 1 to 10000
	Used     int64             `db:"used"     json:"used"`     // leases now
	Labels   map[string]string `db:"labels"   json:"labels,omitempty"`
	// HeartbeatAt is the last probe that found it healthy.
	HeartbeatAt *time.Time `db:"heartbeat_at" json:"heartbeat_at,omitempty"`
	DaemonID    string     `db:"daemon_id"    json:"daemon_id,omitempty"`
	Version     string     `db:"version"      json:"version,omitempty"`
	Message     string     `db:"message"      json:"message,omitempty"` // why it is not healthy
}

const nodeColumns = `
       n.id, n.endpoint, n.state, n.capacity, n.labels, n.heartbeat_at, n.daemon_id, n.version, n.message,
       (select count(*) from leasehold.runtime_slot s where s.node_id = n.id and s.job_id is not null) as used`

const registerNodeSQL = `
insert into leasehold.runtime_node as n (id, endpoint, capacity, labels)
values (@id, @endpoint, @capacity, @labels)
on conflict (id) do update
   set endpoint = excluded.endpoint, capacity = excluded.capacity, labels = excluded.labels,
       state = case when n.state = 'DRAINING' or n.endpoint <> excluded.endpoint then 'UNHEALTHY' else n.state end`

const makeSlotsSQL = `
insert into leasehold.runtime_slot (node_id, slot)
select @id, generate_series(1, @capacity::bigint)
on conflict do nothing`

const nodeSQL = `
select` + nodeColumns + `
  from leasehold.runtime_node n
 where n.id = @id`

// RegisterNode adds a node, or changes the one with that ID; a draining one
// comes back. It takes jobs once a probe has found it healthy. Fewer slots
// than are in use end no job: the surplus is used up.
func (s *Store) RegisterNode(ctx context.Context, n Node) (Node, error) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if err := n.validate(); err != nil {
		return Node{}, err
	}
	batch := &pgx.Batch{}
	batch.Queue(registerNodeSQL, pgx.StrictNamedArgs{
		"id": n.ID, "endpoint": n.Endpoint, "capacity": n.Capacity, "labels": n.Labels,
	})
	batch.Queue(makeSlotsSQL, pgx.StrictNamedArgs{"id": n.ID, "capacity": n.Capacity})
	batch.Queue(nodeSQL, pgx.StrictNamedArgs{"id": n.ID})
	node, err := lastOfBatch[Node](ctx, s.db, batch)
	return node, wrap(err, "register node", n.ID)
}

// NodeReport is what a probe found.
type NodeReport struct {
	Healthy  bool
	DaemonID string
	Version  string
	Message  string // why it is not healthy
}

const reportNodeSQL = `
update leasehold.runtime_node n
   set state = case when n.state = 'DRAINING' then 'DRAINING' when @healthy then 'READY' else 'UNHEALTHY' end,
       heartbeat_at = case when @healthy then clock_timestamp() else n.heartbeat_at end,
       daemon_id = case when @healthy then @daemon_id else n.daemon_id end,
       version = case when @healthy then @version else n.version end,
       message = @message
 where n.id = @id
returning` + nodeColumns

// ReportNode stores what a probe found. Only a healthy one is a heartbeat. A
// draining node goes on draining.
func (s *Store) ReportNode(ctx context.Context, id string, r NodeReport) (Node, error) {
	return s.changeNode(ctx, "report node", id, reportNodeSQL, pgx.StrictNamedArgs{
		"id": id, "healthy": r.Healthy, "daemon_id": cleanText(r.DaemonID, maxName), "version": cleanText(r.Version, maxName),
		"message": cleanText(r.Message, maxMessage),
	})
}

const drainNodeSQL = `
update leasehold.runtime_node n
   set state = 'DRAINING'
 where n.id = @id
returning` + nodeColumns

// DrainNode makes a node take no new jobs. What runs on it goes on.
func (s *Store) DrainNode(ctx context.Context, id string) (Node, error) {
	return s.changeNode(ctx, "drain node", id, drainNodeSQL, pgx.StrictNamedArgs{"id": id})
}

// lockSlotsSQL keeps claims away from a node: they pass over locked slots.
const lockSlotsSQL = `
select from leasehold.runtime_slot
 where node_id = @id
 order by slot
   for update`

const removeNodeSQL = `
delete from leasehold.runtime_node n
 where n.id = @id and not exists (select from leasehold.lease l where l.node_id = n.id)
returning` + nodeColumns

// RemoveNode forgets a node. One that still has leases is a [*ConflictError]:
// drain it first.
func (s *Store) RemoveNode(ctx context.Context, id string) (Node, error) {
	batch := &pgx.Batch{}
	batch.Queue(lockSlotsSQL, pgx.StrictNamedArgs{"id": id})
	batch.Queue(removeNodeSQL, pgx.StrictNamedArgs{"id": id})
	removed, err := lastOfBatch[Node](ctx, s.db, batch)
	if !errors.Is(err, pgx.ErrNoRows) {
		return removed, wrap(err, "remove node", id)
	}
	busy, found, err := one[Node](ctx, s.db, nodeSQL, pgx.StrictNamedArgs{"id": id})
	switch {
	case err != nil:
		return Node{}, wrapRead(err, "remove node", id)
	case !found:
		return Node{}, &NotFoundError{What: "node", ID: id}
	}
	return busy, &ConflictError{What: "node " + id, Recorded: "running jobs", Presented: "removal before it is drained"}
}

func (s *Store) changeNode(ctx context.Context, verb, id, sql string, args pgx.StrictNamedArgs) (Node, error) {
	node, found, err := one[Node](ctx, s.db, sql, args)
	if err == nil && !found {
		return Node{}, &NotFoundError{What: "node", ID: id}
	}
	return node, wrap(err, verb, id)
}

const nodesSQL = `
select` + nodeColumns + `
  from leasehold.runtime_node n
 order by n.id
 limit 1000`

// Nodes lists the nodes by ID.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	nodes, err := all[Node](ctx, s.db, nodesSQL, pgx.StrictNamedArgs{})
	return nodes, wrapRead(err, "list", "nodes")
}
