// Package leasestore is the protocol of durable, fenced job leases on
// PostgreSQL. The database decides who owns a job and until when. The package
// knows nothing of Temporal or Docker.
//
// # States
//
//	PENDING ── Dispatch ──▶ QUEUED ── Claim ──▶ RUNNING ── Complete ──▶ COMPLETED
//	   ▲                                          │ ├─────── Fail ──────▶ FAILED
//	   │                                          │ └────── Cancel ─────▶ CANCELED
//	   └──────────── Release (for retry) ─────────┘
//
// Only a RUNNING job has a lease. A lease is one ownership: a token (the
// secret), an epoch (the fencing token, which rises with every ownership), a
// holder (a worker process), a turn (the order of the attempts that act for
// one ownership) and an expiry. [Store.Recover] takes expired leases over:
// RUNNING stays RUNNING, under a new token and the next epoch. Release at the
// limit of attempts is FAILED. [Store.Withdraw] cancels what nobody owns.
//
// An [Authority] is what a bearer shows, a [Lease] what the database answers.
// A process calls [Store.Prove] before it works, [Store.Renew] or
// [Store.RenewAll] while it works, and stops when its [Lease.Deadline] passes,
// whether or not the database answers. What cannot be done is a typed error:
// see [LostError], [EndedError], [ConflictError], [NotEligibleError],
// [NotFoundError], [UnknownError].
//
// # What is promised
//
// Each promise is held by the test behind it.
//
//   - At most one authority over a job is live at any moment, and each
//     ownership has a higher epoch and a new token (TestTheVerbsFollowTheirModel,
//     TestCase13_AnEndingAndARecoveryNeverBothWin).
//   - A lease that has run out stays out, even if it ran out while a verb waited
//     for its row, behind whatever other transaction
//     (TestCase10_AVerbThatWaitsForTheRowJudgesAfterTheWait,
//     TestL9_RenewalNeverRevivesAndNeverShortens).
//   - Only the database's clock counts, at the moment of the decision
//     (TestCase8_AVerbInALongTransactionJudgesByTheClockNotByItsStart).
//   - Whoever lost a lease changes nothing, and is told why
//     (TestL8_EveryVerbNeedsTheWholeAuthorityOfALiveLease,
//     TestCase14_AnOwnerThatWasReplacedCannotEndItsSuccessorsRun).
//   - An earlier turn neither acts nor takes the lease back
//     (TestL11_AnEarlierTurnCanNeitherActNorTakeTheLeaseBack).
//   - Never more jobs of a definition run than may, however claims race
//     (TestCase11_RacedClaimsNeverBreakTheLimit), and no node is overfilled
//     (TestL7_NodesAreNeverOverfilledUnderContention).
//   - An ending can be sent again, and is never changed
//     (TestL13_AnEndingIsConfirmedAgainAndNeverChanged).
//   - A claim or a recovery whose answer was lost is sent again with the same
//     request ID and has no second effect. No token is handed out before its
//     commit is known
//     (TestL25_ACommitWhoseReplyIsLostIsUnknownAndSentAgainHasNoSecondEffect,
//     TestL25_NoTokenIsHandedOutBeforeTheCommitIsKnown).
//   - Recovery takes each expired lease once, and gives up on a job that keeps
//     losing its lease (TestCase26_ManyRecoverersTakeEachExpiredLeaseOnce,
//     TestL16_AJobThatKeepsLosingItsLeaseEndsAsFailed).
//   - A write to this database behind leasehold.guard(job, epoch), called first
//     in its transaction, commits before recovery gives the job to another, or
//     not at all (TestL19_RecoveryPassesOverAJobWhileItsGuardIsHeld,
//     TestG1_AGuardThatWaitsForARecoveryJudgesAfterIt).
//   - Batches neither deadlock nor wait for one row
//     (TestCase24_RenewalsAndRecoveriesNeverDeadlock,
//     TestL24_ABatchAnswersEachLeaseByItself).
//   - A token never prints, and no error carries it (TestL14_ATokenNeverPrints,
//     TestL14_NoErrorCarriesTheToken).
//   - The ledger proves all this afterwards: see [Store.Verify]
//     (TestL21_TheLedgerProvesThatNoTwoOwnershipsOverlap).
//   - No verb needs a session or leaves one changed: transaction poolers work
//     (TestL1_TheSQLUsesOneClockAndNoSession, and the end of every test).
//     [Migrate] does need one.
//
// # What is not promised
//
//   - That a holder stops in time. It must watch its deadline; a workload whose
//     effects are elsewhere must check the epoch there, or use the guard here.
//   - Anything after a failover to a standby that lacks the last commits: old
//     tokens live again there. Use quorum commit (synchronous_commit on, and
//     synchronous_standby_names), and after a promotion that may have lost
//     commits raise the era, before any worker connects:
//     update leasehold.setting set era = era + 1. Epochs then start from era × 2^40,
//     so none is issued twice.
//   - That a commit which PostgreSQL reports as done while its wait for a
//     standby was cancelled (a warning only) survives a failover.
//   - That a guard holds off the holder itself: release a job only when nothing
//     of its old attempt can still write.
//   - That a job is recovered soon while guarded transactions on it stay open,
//     or that more guards and recoveries are held at once than the lock table
//     has room for (max_locks_per_transaction × max_connections).
//   - Anything in a caller's own transaction, see [DB], until that commits.
//   - That a struct with an unexported field of type [Token], or the JSON of an
//     [Authority], hides the token: the one because fmt reads it without asking,
//     the other because a payload must carry it.
package leasestore
