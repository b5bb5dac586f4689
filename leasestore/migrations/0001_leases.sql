-- Constraints are named so that their violation reads as the rule it broke.
-- +goose Up

-- era prefixes epochs (epoch = era * 2^40 + n). Raise it after a failover to a
-- standby that may lack the last commits, so that no epoch is issued twice.
create table leasehold.setting (
    one_row boolean primary key default true constraint setting_has_one_row check (one_row),
    era     bigint not null default 0 constraint era_fits_an_epoch check (era between 0 and 4194303)
);
insert into leasehold.setting default values;

create table leasehold.definition (
    name                text primary key constraint definition_has_a_name check (name <> ''),
    generation          bigint not null default 1,
    kind                text not null constraint definition_kind_is_known check (kind in ('CONTAINER', 'HEARTBEAT')),
    spec                jsonb not null,
    max_attempts        bigint not null constraint definition_attempts_are_bounded check (max_attempts between 1 and 100),
    backoff             interval not null,
    retry_user_failures boolean not null,
    on_expiry           text not null constraint definition_on_expiry_is_known check (on_expiry in ('restart', 'adopt')),
    node_selector       jsonb not null,
    max_running         bigint constraint definition_limit_is_positive check (max_running > 0),
    paused              boolean not null default false,
    created_at          timestamptz not null default clock_timestamp(),
    changed_at          timestamptz not null default clock_timestamp()
);

create table leasehold.job (
    id                  uuid primary key,
    definition          text not null references leasehold.definition,
    generation          bigint not null,
    kind                text not null,
    spec                jsonb not null,
    max_attempts        bigint not null,
    backoff             interval not null,
    retry_user_failures boolean not null,
    on_expiry           text not null,
    node_selector       jsonb not null,
    idempotency_key     text,
    workflow_id         text not null,
    status              text not null default 'PENDING' constraint job_status_is_known
                        check (status in ('PENDING', 'QUEUED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED')),
    dispatch_attempt    bigint not null default 0,
    attempt             bigint not null default 0,
    recoveries          bigint not null default 0,
    epoch               bigint not null default 0,
    intent              text not null default '',
    scheduled_at        timestamptz not null,
    created_at          timestamptz not null default clock_timestamp(),
    next_attempt_at     timestamptz not null,
    started_at          timestamptz,
    ended_at            timestamptz,
    node_id             text not null default '',
    container_id        text not null default '',
    exit_code           integer,
    failure_kind        text not null default '',
    failure_reason      text not null default '',
    failure_message     text not null default '',
    warnings            text[] not null default '{}',
    log_tail            text not null default '',
    constraint job_has_ended_when_its_status_says_so
        check ((ended_at is not null) = (status in ('COMPLETED', 'FAILED', 'CANCELED')))
);
create unique index job_idempotency_key_is_unique on leasehold.job (definition, idempotency_key)
 where idempotency_key is not null;
create index job_running on leasehold.job (definition) where status = 'RUNNING';
create index job_queued on leasehold.job (definition, scheduled_at, created_at, id) where status = 'QUEUED';
create index job_created on leasehold.job (created_at, id);
create index job_ended on leasehold.job (ended_at) where ended_at is not null;
create index job_workflow on leasehold.job (workflow_id);

create table leasehold.runtime_node (
    id           text primary key constraint node_has_a_name check (id <> ''),
    endpoint     text not null constraint node_has_an_endpoint check (endpoint <> ''),
    state        text not null default 'UNHEALTHY' constraint node_state_is_known
                 check (state in ('READY', 'DRAINING', 'UNHEALTHY')),
    capacity     bigint not null constraint node_capacity_is_bounded check (capacity between 1 and 10000),
    labels       jsonb not null default '{}',
    heartbeat_at timestamptz,
    daemon_id    text not null default '',
    version      text not null default '',
    message      text not null default '',
    created_at   timestamptz not null default clock_timestamp()
);

-- One row per live lease, renewed in place. expires_at has no index, so every
-- renewal is a heap-only update. Recovery scans next_check, which only
-- recovery moves: a stale value delays, it never decides.
create table leasehold.lease (
    job_id       uuid primary key references leasehold.job,
    token        uuid not null,
    generation   bigint not null,
    epoch        bigint not null,
    worker       text not null,
    process      uuid not null,
    turn         bigint not null,
    request_id   uuid not null,
    definition   text not null,
    exclusive    boolean not null,
    node_id      text references leasehold.runtime_node,
    container_id text,
    granted_at   timestamptz not null,
    expires_at   timestamptz not null,
    next_check   timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index lease_next_check on leasehold.lease (next_check);
create unique index lease_is_alone_in_its_definition on leasehold.lease (definition) where exclusive;

-- A node's capacity, a row a slot. A claim takes a free row and skips locked
-- ones; the end of the lease frees it by the foreign key. So claims do not
-- queue behind one node, no node is overfilled, and no counter can drift.
create table leasehold.runtime_slot (
    node_id text not null references leasehold.runtime_node on delete cascade,
    slot    bigint not null,
    job_id  uuid constraint slot_job_has_one_slot unique references leasehold.lease (job_id) on delete set null,
    primary key (node_id, slot)
);

-- Append-only: every change of ownership and every refused ending. token is
-- kept only where it is dead.
create table leasehold.ledger (
    id           bigint generated always as identity primary key,
    job_id       uuid not null,
    epoch        bigint not null,
    event        text not null constraint ledger_event_is_known check (event in
                 ('CLAIMED', 'RECOVERED', 'TAKEN_OVER', 'COMPLETED', 'FAILED', 'CANCELED', 'RELEASED', 'REFUSED')),
    at           timestamptz not null,
    -- when the authority ends at the latest, as known at the event
    until        timestamptz,
    -- where recovery took it away: when the lost authority had run out
    ran_out_at   timestamptz,
    worker       text not null default '',
    process      uuid,
    turn         bigint not null default 0,
    request_id   uuid,
    token        uuid,
    outcome      text not null default '',
    node_id      text not null default '',
    container_id text not null default ''
);
create index ledger_job on leasehold.ledger (job_id, epoch, id);
create index ledger_recovery_request on leasehold.ledger (request_id)
 where request_id is not null and event in ('RECOVERED', 'FAILED');

-- Decisions that wait for a lock need a snapshot from after the wait, which
-- only READ COMMITTED gives.
-- +goose StatementBegin
create function leasehold.require_read_committed() returns void
language plpgsql as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'leasehold decides in READ COMMITTED transactions only'
              using errcode = 'LH002', detail = 'This one is ' || upper(current_setting('transaction_isolation')) || '.';
    end if;
end $$;
-- +goose StatementEnd

-- guard lets a workload write to this database under its epoch, or not at all:
-- called first in the workload's own transaction, it raises LH001 unless that
-- epoch of the job is live, and keeps recovery from the job until the
-- transaction ends. It locks first and judges after: what recovery decided
-- while it waited counts. The caller's role needs no right on the tables.
-- +goose StatementBegin
create function leasehold.guard(job_id uuid, epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog as $$
begin
    perform leasehold.require_read_committed();
    perform pg_advisory_xact_lock_shared(hashtextextended('leasehold guard ' || guard.job_id::text, 0));
    perform from leasehold.lease l
      where l.job_id = guard.job_id and l.epoch = guard.epoch and l.expires_at > clock_timestamp();
    if not found then
        raise exception 'epoch % of job % is not live', guard.epoch, guard.job_id using errcode = 'LH001';
    end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function leasehold.guard, leasehold.require_read_committed;
drop table leasehold.ledger, leasehold.runtime_slot, leasehold.lease, leasehold.runtime_node,
           leasehold.job, leasehold.definition, leasehold.setting;
