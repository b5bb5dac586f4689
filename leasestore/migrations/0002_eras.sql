-- Eras begin by themselves, nodes are chosen by index, and retention needs no
-- right to delete from the ledger.
-- +goose Up

-- The era belongs to one history of commits: one timeline of one cluster. On
-- any other, commits that somebody was told of may be missing.
alter table leasehold.setting
    add column timeline  text not null default '',
    add column cluster   bigint not null default 0,
    -- when claims and recoveries began to wait for holders of lost leases; null: they need not
    add column raised_at timestamptz,
    -- the operator's word: a promotion loses no commit, so leases live through it
    add column quorum    boolean not null default false,
    -- nothing that ended more recently is forgotten, whoever asks
    add column kept_for  interval not null default interval '1 hour'
               constraint setting_keeps_for_no_negative_time check (kept_for >= interval '0');

-- A service whose PostgreSQL does not tell its timeline can replace this. Null on
-- a standby.
create function leasehold.timeline() returns text
language sql volatile as
$$ select case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end $$;

create function leasehold.cluster() returns bigint
language sql volatile as $$ select system_identifier from pg_control_system() $$;

update leasehold.setting set timeline = leasehold.timeline(), cluster = leasehold.cluster();

-- enter_era raises the era if the history of commits is another one than the
-- era's, or if it is told to, and returns the era. Of many that call it at once
-- one raises it; the others wait for that and find it done.
--
-- Every lease dies with its era, unless the operator vouches for promotions. Its
-- holder may believe in it until its old expiry, so recovery looks at it then.
-- +goose StatementBegin
create function leasehold.enter_era(forced boolean) returns bigint
language plpgsql as $$
declare
    known   leasehold.setting;
    entered timestamptz;
begin
    select * into known from leasehold.setting;
    if not forced and (known.timeline, known.cluster) = (leasehold.timeline(), leasehold.cluster()) then
        return known.era;
    end if;
    perform leasehold.require_read_committed();
    select * into known from leasehold.setting for update;
    if not forced and (known.timeline, known.cluster) = (leasehold.timeline(), leasehold.cluster()) then
        return known.era;
    end if;
    if forced or not known.quorum then
        perform from leasehold.lease order by job_id for update;
        entered := clock_timestamp();
        update leasehold.lease
           set next_check = greatest(expires_at, entered), expires_at = least(expires_at, entered);
    end if;
    update leasehold.setting
       set era = era + 1, timeline = leasehold.timeline(), cluster = leasehold.cluster(), raised_at = entered;
    return known.era + 1;
end $$;
-- +goose StatementEnd

-- Free and used slots of a node are found without looking at the others.
create index slot_is_free on leasehold.runtime_slot (node_id, slot) where job_id is null;
create index slot_is_used on leasehold.runtime_slot (node_id) where job_id is not null;

-- forget deletes jobs that ended long ago, oldest first, each with all that the
-- ledger says of it: what is left proves as much as before. It is the only way
-- for a worker's role to delete from the ledger. statement_timestamp lets the
-- index serve the scan; it only errs towards keeping.
-- +goose StatementBegin
create function leasehold.forget(older_than interval, at_most bigint) returns setof uuid
language sql security definer set search_path = pg_catalog as $$
    with old as materialized (
        select id from leasehold.job
         where ended_at < statement_timestamp() - greatest(forget.older_than, (select kept_for from leasehold.setting))
         order by ended_at
         limit least(forget.at_most, 1000)
           for update skip locked
    ), entries as (
        delete from leasehold.ledger g using old where g.job_id = old.id
    )
    delete from leasehold.job j
     using old
     where j.id = old.id
    returning j.id
$$;
-- +goose StatementEnd

-- +goose Down
drop function leasehold.forget, leasehold.enter_era, leasehold.cluster, leasehold.timeline;
drop index leasehold.slot_is_free, leasehold.slot_is_used;
alter table leasehold.setting
    drop column timeline, drop column cluster, drop column raised_at, drop column quorum, drop column kept_for;
