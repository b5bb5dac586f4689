-- The least that each of four roles needs. Run it after every migration, as a
-- superuser or as the owner of the schema who may create roles; it can be run
-- again at any time. Accounts get a role by: grant leasehold_worker to account.
--
--   leasehold_owner     owns the schema and migrates it
--   leasehold_worker    runs jobs: it reads and writes, cannot change or delete what
--                       the ledger says, and cannot create anything
--   leasehold_workload  writes to this database behind leasehold.guard, and cannot read
--   leasehold_reader    looks at everything but tokens
do $$
declare
    role text;
begin
    foreach role in array array['leasehold_owner', 'leasehold_worker', 'leasehold_workload', 'leasehold_reader'] loop
        begin
            execute format('create role %I nologin', role);
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
end $$;

do $$
declare
    object record;
begin
    alter schema leasehold owner to leasehold_owner;
    for object in select oid::regclass as name from pg_class
                   where relnamespace = 'leasehold'::regnamespace and relkind = 'r' loop
        execute format('alter table %s owner to leasehold_owner', object.name);
    end loop;
    for object in select oid::regprocedure as name from pg_proc where pronamespace = 'leasehold'::regnamespace loop
        execute format('alter function %s owner to leasehold_owner', object.name);
    end loop;
end $$;

revoke all on all tables in schema leasehold from public, leasehold_worker, leasehold_workload, leasehold_reader;
revoke all on all functions in schema leasehold from public, leasehold_worker, leasehold_workload, leasehold_reader;
revoke all on schema leasehold from public;
grant usage on schema leasehold to leasehold_worker, leasehold_workload, leasehold_reader;

grant select on all tables in schema leasehold to leasehold_worker;
grant insert, update on leasehold.definition, leasehold.job to leasehold_worker;
grant insert, update, delete on leasehold.lease, leasehold.runtime_node, leasehold.runtime_slot to leasehold_worker;
grant insert on leasehold.ledger to leasehold_worker;
grant update (era, timeline, cluster, raised_at) on leasehold.setting to leasehold_worker;
grant execute on function leasehold.require_read_committed, leasehold.timeline, leasehold.cluster, leasehold.enter_era,
                          leasehold.forget to leasehold_worker;

grant execute on function leasehold.guard to leasehold_workload;

grant select on leasehold.definition, leasehold.job, leasehold.runtime_node, leasehold.runtime_slot, leasehold.setting,
                leasehold.goose_db_version to leasehold_reader;
grant select (job_id, generation, epoch, worker, process, turn, definition, exclusive, node_id, container_id,
              granted_at, expires_at, next_check) on leasehold.lease to leasehold_reader;
grant select (id, job_id, epoch, event, at, until, ran_out_at, worker, process, turn, outcome, node_id, container_id)
   on leasehold.ledger to leasehold_reader;
