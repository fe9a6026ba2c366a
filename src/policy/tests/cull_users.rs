//! Users are deleted only when they were away for long, own nothing that runs, and somebody asked.

use super::*;
use crate::domain::{Account, UserName};

fn cull() -> CullUsers {
    CullUsers { inactive_after: hours(24), admins: false }
}

fn away(days: i64) -> Account {
    Account {
        name: UserName("alice".into()),
        admin: false,
        last_activity: Some(now() - SignedDuration::from_hours(24 * days)),
        created: None,
        active: false,
    }
}

fn now() -> Timestamp {
    "2026-12-01T12:00:00Z".parse().unwrap()
}

fn judge(cull: &CullUsers, account: &Account) -> Result<Timestamp, UserStays> {
    cull.away_since(account, &Ledger::default(), now())
}

#[test]
fn who_was_away_for_the_whole_time_is_deleted_and_who_was_not_stays() {
    assert_eq!(judge(&cull(), &away(1)), Ok(now() - hours(24)));
    let seen = now() - hours(23);
    let account = Account { last_activity: Some(seen), ..away(0) };
    assert_eq!(judge(&cull(), &account), Err(UserStays::Seen(seen)));
}

#[test]
fn an_admin_stays_unless_the_flags_say_so() {
    let admin = Account { admin: true, ..away(9) };
    assert_eq!(judge(&cull(), &admin), Err(UserStays::Admin));
    assert!(judge(&CullUsers { admins: true, ..cull() }, &admin).is_ok());
}

#[test]
fn whoever_has_a_server_stays() {
    let account = Account { active: true, ..away(9) };
    assert_eq!(judge(&cull(), &account), Err(UserStays::HasServer));
}

#[test]
fn whoever_keeps_a_session_stays_even_when_it_is_gone() {
    let keep = |until| Keep {
        until,
        by: "alice".to_owned(),
        at: now() - hours(50),
        reason: None,
        cost: SignedDuration::ZERO,
    };
    let recorded = |until| {
        let record = Record { keep: Some(Box::new(keep(until))), ..Record::new(now() - hours(60)) };
        Ledger { records: [(ServerId::new("alice", "a"), record)].into(), ..Ledger::default() }
    };
    let granted = |until| {
        let grant = Grant { server: ServerId::new("alice", "a"), keep: keep(until) };
        Ledger { keeps: [(UserName("alice".into()), vec![grant])].into(), ..Ledger::default() }
    };
    let (later, earlier) = (now() + hours(1), now() - hours(1));
    for ledger in [recorded(later), granted(later)] {
        assert_eq!(cull().away_since(&away(9), &ledger, now()), Err(UserStays::Keeps));
    }
    for ledger in [recorded(earlier), granted(earlier)] {
        assert!(cull().away_since(&away(9), &ledger, now()).is_ok());
    }
}

#[test]
fn who_never_came_is_judged_by_when_the_account_was_made_or_stays() {
    let never = Account { last_activity: None, ..away(9) };
    assert_eq!(judge(&cull(), &never), Err(UserStays::Unknown));
    let made = |hours_ago| Account { created: Some(now() - hours(hours_ago)), ..never.clone() };
    assert!(judge(&cull(), &made(25)).is_ok());
    assert!(judge(&cull(), &made(23)).is_err());
}

#[test]
fn a_stamp_from_the_future_deletes_nobody() {
    let account = Account { last_activity: Some(now() + hours(900)), ..away(9) };
    assert!(matches!(judge(&cull(), &account), Err(UserStays::Seen(_))));
}
