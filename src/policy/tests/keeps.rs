//! What owners and admins may choose, what it takes of a budget, and why not otherwise.

use super::*;

fn offering(choices: &[i64], budget: i64, reason: ReasonNeed) -> Policy {
    let choices = choices.iter().map(|choice| hours(*choice)).collect();
    Policy { keep: KeepOffer { choices, weekly_budget: hours(budget), reason }, ..policy() }
}

fn with(policy: Policy) -> Day {
    Day::of(&["alice", "bob"], policy)
}

fn day() -> Day {
    with(offering(&[2, 8, 24], 30, ReasonNeed::Optional))
}

fn admin() -> Giver {
    Giver::Admin(crate::domain::UserName("root".into()))
}

impl Day {
    /// Alice's session is kept, or not.
    fn keep(&mut self, by: &Giver, length: SignedDuration) -> Result<Keep, KeepRefused> {
        self.keep_server("", by, length)
    }

    fn keep_server(&mut self, name: &str, by: &Giver, length: SignedDuration) -> Result<Keep, KeepRefused> {
        let id = ServerId::new("alice", name);
        let keep = keep(&self.ledger, &self.policy, &id, by, length, None, self.now)?;
        self.ledger.kept(&id, keep.clone());
        Ok(keep)
    }

    fn offers(&self, by: &Giver) -> Offers {
        offers(&self.ledger, &self.policy, &ServerId::new("alice", ""), by, self.now)
    }

    fn refusals(&self, by: &Giver) -> Vec<Option<KeepRefused>> {
        self.offers(by).choices.into_iter().map(|choice| choice.refused).collect()
    }

    fn wait_until(&mut self, instant: &str) {
        self.now = at(instant);
        self.look();
    }
}

#[test]
fn a_keep_protects_for_its_time_and_says_whose_word_it_is() {
    let mut day = day();
    day.run("09:30");
    assert_eq!(day.story(), [("warned", at("09:00"))]);
    day.keep(&Giver::Owner, hours(2)).unwrap();
    let kept = ProtectedReason::Kept { until: at("11:30"), by: "alice".to_owned() };
    assert_eq!(day.verdict("11:25"), Verdict::Protected(kept));
    day.run("12:30");
    let expected = [
        ("warned", at("09:00")),
        ("unmarked", at("09:35")),
        ("withdrawn", at("09:40")),
        ("warned", at("11:30")),
        ("reminded", at("12:15")),
        ("stopped", at("12:30")),
    ];
    assert_eq!(day.story(), expected);
    assert_eq!(day.record().warnings, 2, "of one idle spell, and each a letter of its own");
}

#[test]
fn everything_on_offer_may_be_chosen_while_the_budget_lasts() {
    let mut day = day();
    assert_eq!(day.refusals(&Giver::Owner), [None, None, None]);
    day.keep(&Giver::Owner, hours(24)).unwrap();
    day.wait_until("2026-12-02T08:00:00Z");
    let offers = day.offers(&Giver::Owner);
    assert_eq!((offers.budget, offers.left, offers.kept), (hours(30), hours(6), None));
    let spent = |again| Some(KeepRefused::BudgetSpent { left: hours(6), again });
    let in_a_week = Some(at("2026-12-08T08:00:00Z"));
    assert_eq!(day.refusals(&Giver::Owner), [None, spent(in_a_week), spent(in_a_week)]);
    assert_eq!(day.keep(&Giver::Owner, hours(8)), Err(spent(in_a_week).unwrap()));
}

#[test]
fn a_keep_counts_for_seven_days_and_then_no_longer() {
    let mut day = day();
    day.keep(&Giver::Owner, hours(24)).unwrap();
    day.wait_until("2026-12-08T07:55:00Z");
    assert_eq!(day.offers(&Giver::Owner).left, hours(6));
    day.wait_until("2026-12-08T08:00:00Z");
    assert_eq!(day.offers(&Giver::Owner).left, hours(30));
    assert!(day.ledger.keeps.is_empty(), "what no longer counts is forgotten");
}

#[test]
fn what_is_longer_than_the_whole_budget_is_never_to_be_had() {
    let day = with(offering(&[24], 10, ReasonNeed::Optional));
    let never = KeepRefused::BudgetSpent { left: hours(10), again: None };
    assert_eq!(day.refusals(&Giver::Owner), [Some(never)]);
}

#[test]
fn an_extension_takes_only_the_time_that_it_adds() {
    let mut day = day();
    day.keep(&Giver::Owner, hours(8)).unwrap();
    day.run("10:00");
    let keep = day.keep(&Giver::Owner, hours(8)).unwrap();
    assert_eq!((keep.until, keep.cost, day.offers(&Giver::Owner).left), (at("18:00"), hours(2), hours(20)));
}

#[test]
fn a_keep_is_never_shortened() {
    let mut day = day();
    day.keep(&Giver::Owner, hours(8)).unwrap();
    let longer = KeepRefused::AlreadyKept(at("16:00"));
    assert_eq!(day.refusals(&Giver::Owner), [Some(longer.clone()), Some(longer.clone()), None]);
    assert_eq!(day.keep(&admin(), hours(2)), Err(longer));
    let shorter = Keep { until: at("09:00"), ..day.offers(&Giver::Owner).kept.unwrap() };
    day.ledger.kept(&ServerId::new("alice", ""), shorter);
    assert_eq!(day.offers(&Giver::Owner).kept.unwrap().until, at("16:00"));
}

#[test]
fn an_admins_keep_takes_nothing_of_the_owners_budget_and_needs_none() {
    let mut day = with(offering(&[24], 10, ReasonNeed::Optional));
    let keep = day.keep(&admin(), hours(24)).unwrap();
    assert_eq!((keep.by.as_str(), keep.cost), ("root", SignedDuration::ZERO));
    assert_eq!(day.offers(&Giver::Owner).left, hours(10));
    let remembered: Vec<_> = day.ledger.grants(&ServerId::new("alice", "").user).collect();
    assert_eq!(remembered, [&Grant { server: ServerId::new("alice", ""), keep }]);
}

#[test]
fn all_servers_of_an_owner_share_one_budget_also_those_that_are_gone() {
    let mut day = day();
    let mut other = day.sessions[0].clone();
    other.server.id = ServerId::new("alice", "other");
    day.sessions.push(other);
    day.look();
    day.keep_server("other", &Giver::Owner, hours(24)).unwrap();
    day.sessions.pop();
    day.wait_until("2026-12-03T08:00:00Z");
    assert!(!day.ledger.records.contains_key(&ServerId::new("alice", "other")));
    assert_eq!(day.offers(&Giver::Owner).left, hours(6));
    assert_eq!(
        offers(&day.ledger, &day.policy, &ServerId::new("bob", ""), &Giver::Owner, day.now).left,
        hours(30)
    );
}

#[test]
fn only_what_is_on_offer_may_be_chosen_and_only_for_a_server_that_runs() {
    let mut day = day();
    assert_eq!(day.keep(&Giver::Owner, hours(3)), Err(KeepRefused::NotOffered(hours(3))));
    assert_eq!(day.keep(&admin(), hours(3)), Err(KeepRefused::NotOffered(hours(3))));
    assert_eq!(day.keep_server("none", &Giver::Owner, hours(2)), Err(KeepRefused::NotRunning));
    day.run("10:00");
    assert_eq!(day.story().last(), Some(&("stopped", at("10:00"))));
    assert_eq!(day.keep(&Giver::Owner, hours(2)), Err(KeepRefused::NotRunning));
}

#[test]
fn a_reason_is_asked_for_where_the_policy_says_so_and_is_of_bearable_length() {
    let day = with(offering(&[2], 72, ReasonNeed::Required));
    let id = ServerId::new("alice", "");
    let keep = |why: Option<&str>| keep(&day.ledger, &day.policy, &id, &Giver::Owner, hours(2), why, day.now);
    assert_eq!(keep(None), Err(KeepRefused::ReasonMissing));
    assert_eq!(keep(Some(" \n")), Err(KeepRefused::ReasonMissing));
    assert_eq!(keep(Some(&"x".repeat(LONGEST_REASON + 1))), Err(KeepRefused::ReasonTooLong));
    assert_eq!(keep(Some(" thesis ")).unwrap().reason.as_deref(), Some("thesis"));
}

#[test]
fn a_clock_that_was_set_back_gives_no_budget_back() {
    let mut day = day();
    day.keep(&Giver::Owner, hours(24)).unwrap();
    day.now -= hours(2);
    assert_eq!(day.offers(&Giver::Owner).left, hours(6));
}
