package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// lane is a temporary database of one size, and what the slices hand to each
// other in it.
type lane struct {
	Size
	name string
	url  string
	session
	clock cpuClock

	queuedOfKind int // jobs of each kind that wait to be claimed
	floorRows    int
	// most is how many rows an operation may spread over, of each connection
	// where each has its own. 0 is all.
	most int

	live    []leasestore.Authority // all leases that were loaded
	queued  pile[uuid.UUID]
	claimed pile[leasestore.Authority]
	taken   pile[uuid.UUID] // all that was claimed, completed or not
}

// session is a set of connections with a store on it.
type session struct {
	pool  *pgxpool.Pool
	store *leasestore.Store
}

func (b *bench) openLane(ctx context.Context, size Size) (*lane, error) {
	b.say("loading %d jobs, %d of them leased", size.Jobs, size.Leases)
	name, err := b.server.create(ctx)
	if err != nil {
		return nil, err
	}
	l := &lane{Size: size, name: name}
	if err := b.prepareLane(ctx, l); err != nil {
		return nil, errors.Join(err, b.closeLane(ctx, l))
	}
	return l, nil
}

func (b *bench) prepareLane(ctx context.Context, l *lane) (err error) {
	if l.url, err = b.server.urlOf(l.name); err != nil {
		return err
	}
	if _, err = leasestore.Migrate(ctx, l.url); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if l.session, err = b.openSession(ctx, l, b.Connections); err != nil {
		return err
	}
	if l.clock, err = cpuClockOf(ctx, l.pool); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return l.fill(ctx)
}

func (b *bench) openSession(ctx context.Context, l *lane, connections int) (session, error) {
	pool, err := b.server.pool(ctx, l.url, connections)
	if err != nil {
		return session{}, err
	}
	return session{pool: pool, store: leasestore.New(pool)}, nil
}

func (b *bench) closeLane(ctx context.Context, l *lane) error {
	if l.pool != nil {
		l.pool.Close()
	}
	return b.server.drop(ctx, l.name)
}

// expiring are the leases that recovery is measured with. The others are only
// renewed.
func (l *lane) expiring(most int) []leasestore.Authority {
	return l.live[:l.bounded(min(most, len(l.live)/2))]
}

// own are the leases that one of so many connections renews.
func (l *lane) own(worker, workers int) []leasestore.Authority {
	kept := l.live[len(l.live)/2:]
	own := kept[worker*len(kept)/workers : (worker+1)*len(kept)/workers]
	return own[:l.bounded(len(own))]
}

func (l *lane) bounded(rows int) int {
	if l.most > 0 {
		return min(l.most, rows)
	}
	return rows
}

// pile is what connections take from, and put to, in no particular order.
type pile[T any] struct {
	mu    sync.Mutex
	items []T
}

func (p *pile[T]) put(items ...T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = append(p.items, items...)
}

func (p *pile[T]) take() (item T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.items) == 0 {
		return item, false
	}
	item = p.items[len(p.items)-1]
	p.items = p.items[:len(p.items)-1]
	return item, true
}

func (p *pile[T]) all() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.items)
}

func (p *pile[T]) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = nil
}
