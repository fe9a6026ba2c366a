//! What exemptions cost, and who has to know when they end.

use super::*;

/// Half past nine at which the exemption of these tests ends, ten days later.
const END: &str = "2026-12-11T09:30:00Z";

fn standby(until: Option<&str>) -> Rule {
    let users = Some(vec![pattern("svc-*").unwrap()]);
    Rule {
        name: "standby".to_owned(),
        matches: Match { users, ..Match::default() },
        exempt: Some(Exemption {
            until: until.map(at),
            reason: "nightly scoring".to_owned(),
            owner: "mlops".to_owned(),
        }),
        overrides: Overrides::default(),
    }
}

fn day(until: Option<&str>) -> Day {
    Day::of(&["svc-scoring", "bob"], Policy { rules: vec![standby(until)], ..policy() })
}

impl Day {
    fn exempted(&self) -> Exempted<'_> {
        exemptions(&self.policy, &self.ledger, &self.plan).remove(0)
    }

    /// Who has to be told at an instant, and then is.
    fn tells(&mut self, instant: &str) -> Vec<Concerned> {
        let all = exemptions(&self.policy, &self.ledger, &self.plan);
        let due: Vec<_> = endings(&all, at(instant)).into_iter().map(|(_, end, whom)| (end, whom)).collect();
        for (end, concerned) in &due {
            for whom in concerned {
                self.ledger.ending_told("standby", *whom, Some(*end));
            }
        }
        due.into_iter().flat_map(|(_, concerned)| concerned).collect()
    }
}

#[test]
fn an_exemption_costs_the_time_for_which_its_cards_rest() {
    let mut day = day(None);
    day.sessions[0].gpus.as_mut().unwrap().push(GpuSample { model: "H100".to_owned(), ..card("GPU-2") });
    day.run("09:00");
    day.alice().works(true);
    day.run("09:30");
    day.alice().works(false);
    day.run("10:00");
    let exempted = day.exempted();
    assert_eq!((exempted.rule, exempted.servers), ("standby", vec![&ServerId::new("svc-scoring", "")]));
    let spared = exempted.spared.unwrap();
    assert_eq!(spared.since, at("08:00"));
    let expected = [("H100".to_owned(), mins(115)), ("NVIDIA A100-SXM4-80GB".to_owned(), mins(90))];
    assert_eq!(spared.idle.clone().into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(day.exempted().idle(), mins(205));
}

#[test]
fn time_in_which_nobody_watched_costs_nothing() {
    let mut day = day(None);
    day.run("08:30");
    day.alice().gpus = Err("down".into());
    day.run("09:00");
    assert_eq!(day.exempted().idle(), mins(30));
}

#[test]
fn who_answers_for_it_and_the_admins_are_told_a_week_before_the_end_and_once() {
    let mut day = day(Some(END));
    assert_eq!(day.tells("2026-12-04T09:29:59Z"), []);
    assert_eq!(day.tells("2026-12-04T09:30:00Z"), [Concerned::Owner, Concerned::Admins]);
    assert_eq!(day.tells("2026-12-04T09:35:00Z"), []);
}

#[test]
fn who_could_not_be_told_is_told_later_and_nobody_after_the_end() {
    let mut day = day(Some(END));
    day.tells("2026-12-05T08:00:00Z");
    day.ledger.ending_told("standby", Concerned::Admins, None);
    assert_eq!(day.tells("2026-12-06T08:00:00Z"), [Concerned::Admins]);
    day.ledger.ending_told("standby", Concerned::Owner, None);
    assert_eq!(day.tells(END), []);
}

#[test]
fn an_end_that_was_moved_is_told_anew_and_none_never() {
    let mut day = day(Some(END));
    day.tells("2026-12-05T08:00:00Z");
    day.policy.rules = vec![standby(Some("2026-12-20T09:30:00Z"))];
    assert_eq!(day.tells("2026-12-05T08:00:00Z"), []);
    assert_eq!(day.tells("2026-12-14T08:00:00Z"), [Concerned::Owner, Concerned::Admins]);
    day.policy.rules = vec![standby(None)];
    assert_eq!(day.tells("2036-12-14T08:00:00Z"), []);
}

#[test]
fn an_exemption_that_left_the_policy_is_forgotten_and_one_that_ended_is_not() {
    let mut day = day(Some("09:00"));
    day.run("10:00");
    assert_eq!(day.exempted().idle(), mins(55), "until it ended");
    assert_eq!(day.exempted().servers, Vec::<&ServerId>::new());
    day.policy.rules.clear();
    day.run("10:05");
    assert!(day.ledger.spared.is_empty());
}
