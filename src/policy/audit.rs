//! What is odd about the rules: those that can never match, and patterns that match nothing there is.

use globset::GlobMatcher;
use jiff::Timestamp;

use super::{Match, Policy, Rule, Session};

/// Something about a rule that its author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOddity {
    /// Every session that it matches is taken by this rule before it.
    Shadowed(String),
    /// This condition lists nothing, so that no session meets it.
    EmptyCondition(&'static str),
    /// Its exemption ended.
    ExemptionEnded(Timestamp),
    /// Nothing there is now matches this pattern of this condition.
    NothingMatches(&'static str, String),
}

/// What is odd about the rules, each with the rule's name. Only what is certain is called never: whatever
/// the sessions are.
pub fn audit(
    policy: &Policy,
    sessions: &[Session],
    models: &[String],
    now: Timestamp,
) -> Vec<(String, RuleOddity)> {
    let of_rule = |(place, rule): (usize, &Rule)| {
        let earlier = policy.rules[..place].iter().find(|earlier| covers(&earlier.matches, &rule.matches));
        let mut odd: Vec<RuleOddity> = match (empty_condition(&rule.matches), earlier) {
            (Some(field), _) => vec![RuleOddity::EmptyCondition(field)],
            (None, Some(earlier)) => vec![RuleOddity::Shadowed(earlier.name.clone())],
            (None, None) => unmatched(&rule.matches, sessions, models),
        };
        let end = rule.exempt.as_ref().filter(|exemption| !exemption.holds(now)).and_then(|e| e.until);
        odd.extend(end.map(RuleOddity::ExemptionEnded));
        let name = rule.name.clone();
        odd.into_iter().map(move |oddity| (name.clone(), oddity)).collect::<Vec<_>>()
    };
    policy.rules.iter().enumerate().flat_map(of_rule).collect()
}

type Globs = Option<Vec<GlobMatcher>>;

impl Match {
    /// The conditions that are lists, with their names.
    fn lists(&self) -> [(&'static str, &Globs); 5] {
        [
            ("users", &self.users),
            ("groups", &self.groups),
            ("servers", &self.servers),
            ("profiles", &self.profiles),
            ("gpu_models", &self.gpu_models),
        ]
    }
}

fn empty_condition(matches: &Match) -> Option<&'static str> {
    let empty = |globs: &Globs| globs.as_ref().is_some_and(Vec::is_empty);
    matches.lists().into_iter().find(|(_, globs)| empty(globs)).map(|(field, _)| field)
}

/// Whether every session that meets `narrow` certainly meets `wide`, too.
fn covers(wide: &Match, narrow: &Match) -> bool {
    let lists = wide.lists().into_iter().zip(narrow.lists());
    let mut lists = lists.map(|((field, wide), (_, narrow))| match (wide, narrow) {
        (None, _) => true,
        // A session has one user and one server name, but need not have a group, a profile or a card.
        (Some(wide), None) => matches!(field, "users" | "servers") && wide.iter().any(is_all),
        (Some(wide), Some(narrow)) => {
            narrow.iter().all(|one| wide.iter().any(|glob| takes_all_of(glob, one)))
        }
    });
    let labels = wide.labels.iter().flatten().all(|(key, glob)| {
        narrow.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|one| takes_all_of(glob, one))
    });
    lists.all(|covered| covered) && labels && (wide.admin.is_none() || wide.admin == narrow.admin)
}

fn is_all(glob: &GlobMatcher) -> bool {
    text(glob) == "*"
}

/// Whether `wide` certainly matches all that `narrow` matches: the same pattern, everything, or a name
/// without any sign of a pattern.
fn takes_all_of(wide: &GlobMatcher, narrow: &GlobMatcher) -> bool {
    let is_name = !text(narrow).contains(['*', '?', '[', ']', '{', '}', '\\']);
    text(wide) == text(narrow) || is_all(wide) || (is_name && wide.is_match(text(narrow)))
}

fn text(glob: &GlobMatcher) -> &str {
    glob.glob().glob()
}

/// The patterns that match nothing of what there is.
fn unmatched(matches: &Match, sessions: &[Session], models: &[String]) -> Vec<RuleOddity> {
    let known = |field: &str, glob: &GlobMatcher| match field {
        "users" => sessions.iter().any(|s| glob.is_match(&*s.server.id.user.0)),
        "groups" => sessions.iter().flat_map(|s| &s.server.groups).any(|group| glob.is_match(group)),
        "servers" => sessions.iter().any(|s| glob.is_match(&*s.server.id.name.0)),
        "profiles" => sessions.iter().filter_map(|s| s.server.profile.as_ref()).any(|p| glob.is_match(p)),
        _ => models.iter().any(|model| glob.is_match(model)),
    };
    let lists = matches.lists().into_iter().flat_map(|(field, globs)| {
        globs
            .iter()
            .flatten()
            .filter(move |glob| !known(field, glob))
            .map(move |glob| (field, text(glob).to_owned()))
    });
    let has = |key: &str, glob: &GlobMatcher| {
        sessions
            .iter()
            .filter_map(|s| s.server.labelled(key).first().copied())
            .any(|(_, value)| glob.is_match(value))
    };
    let labels = matches.labels.iter().flatten().filter(|(key, glob)| !has(key, glob));
    let labels = labels.map(|(key, glob)| ("labels", format!("{key} = {}", text(glob))));
    lists.chain(labels).map(|(field, pattern)| RuleOddity::NothingMatches(field, pattern)).collect()
}
