//! Which of the Hub's stamps are our own doing: a whole answer that passes the proxy moves the stamp
//! of its server to that moment, though nobody was there.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::domain::{Server, ServerId};

/// How far the proxy's clock and ours, or its stamp and the answer's end, may lie apart.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// Looks remembered of one server. The Hub's stamp follows the latest ones; where it never follows,
/// older looks can only be missed, which makes a stamp count as somebody's.
const REMEMBERED: usize = 500;

/// Our own traces, by server.
#[derive(Debug, Default)]
pub struct Footprints {
    servers: BTreeMap<ServerId, Trail>,
}

/// What is known of one run of a server at which we left traces.
#[derive(Debug)]
struct Trail {
    started: Option<Timestamp>,
    /// When looks that left a trace began and ended, oldest first.
    ours: VecDeque<(Timestamp, Timestamp)>,
    /// The last stamp that was not ours.
    genuine: Option<Timestamp>,
}

impl Footprints {
    /// A look at `server`, whose stamp was disowned before, left a trace from `began` to `now`.
    pub fn left(&mut self, server: &Server, began: Timestamp, now: Timestamp) {
        let (started, genuine) = (server.started, server.last_activity);
        let trail = self.servers.entry(server.id.clone()).or_insert_with(|| Trail::new(started, genuine));
        if trail.started != started {
            *trail = Trail::new(started, genuine);
        }
        if trail.ours.len() == REMEMBERED {
            trail.ours.pop_front();
        }
        trail.ours.push_back((began, now));
    }

    /// Somebody else's look on our behalf. Where we left no trace before, it is not known what the Hub's stamp
    /// would be without it.
    pub fn also(&mut self, id: &ServerId, began: Timestamp, ended: Timestamp) {
        if let Some(trail) = self.servers.get_mut(id) {
            trail.ours.push_back((began, ended));
        }
    }

    /// Every look that left a trace.
    pub fn all(&self) -> impl Iterator<Item = (ServerId, Timestamp, Timestamp)> {
        let looks = |(id, trail): (&ServerId, &Trail)| {
            let id = id.clone();
            trail.ours.iter().map(move |(began, ended)| (id.clone(), *began, *ended)).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(looks)
    }

    /// The Hub's last stamp that is not ours, where the Hub now says `stamp` of the run that began at
    /// `started`. Before we left a trace every stamp is somebody's: that can only delay a stop.
    pub fn without_ours(
        &mut self,
        id: &ServerId,
        started: Option<Timestamp>,
        stamp: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let Some(trail) = self.servers.get_mut(id).filter(|trail| trail.started == started) else {
            return stamp;
        };
        let stamp = stamp?;
        // The Hub's stamp never goes back, so that looks before it are of no more use.
        trail.ours.retain(|(_, ended)| stamp <= *ended + SLACK);
        let is_ours = trail.ours.iter().any(|(began, _)| *began - SLACK <= stamp);
        if !is_ours || trail.genuine.is_none() {
            trail.genuine = Some(stamp);
        }
        trail.genuine
    }

    /// Forgets servers that are gone.
    pub fn keep_only(&mut self, running: impl Fn(&ServerId) -> bool) {
        self.servers.retain(|id, _| running(id));
    }
}

impl Trail {
    fn new(started: Option<Timestamp>, genuine: Option<Timestamp>) -> Self {
        Self { started, ours: VecDeque::new(), genuine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SpawnerState;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn alice() -> ServerId {
        ServerId::new("alice", "")
    }

    /// Alice's server as the Hub shows it.
    fn server(started: i64, stamp: i64) -> Server {
        Server {
            id: alice(),
            started: Some(at(started)),
            last_activity: Some(at(stamp)),
            groups: Vec::new(),
            admin: false,
            profile: None,
            labels: BTreeMap::new(),
            pending: None,
            ready: true,
            contacts: Vec::new(),
            spawner: SpawnerState::default(),
            path: "/user/alice/".to_owned(),
        }
    }

    /// Footprints of looks at these seconds, after the Hub said `stamp`.
    fn after(stamp: i64, looks: &[(i64, i64)]) -> Footprints {
        let mut footprints = Footprints::default();
        for (began, ended) in looks {
            footprints.left(&server(0, stamp), at(*began), at(*ended));
        }
        footprints
    }

    fn seen(footprints: &mut Footprints, stamp: i64) -> Option<Timestamp> {
        footprints.without_ours(&alice(), Some(at(0)), Some(at(stamp)))
    }

    #[test]
    fn a_stamp_of_our_own_looks_is_not_believed() {
        let mut footprints = after(100, &[(200, 201), (260, 261)]);
        for ours in [198, 200, 203, 258, 260, 263] {
            assert_eq!(seen(&mut footprints, ours), Some(at(100)), "{ours}");
        }
    }

    #[test]
    fn a_stamp_that_is_not_ours_counts_from_then_on() {
        let mut footprints = after(100, &[(200, 201), (260, 261)]);
        assert_eq!(seen(&mut footprints, 210), Some(at(210)));
        assert_eq!(seen(&mut footprints, 261), Some(at(210)), "ours again");
        assert_eq!(seen(&mut footprints, 264), Some(at(264)));
    }

    #[test]
    fn where_we_left_no_trace_every_stamp_counts_and_nothing_is_kept() {
        let mut footprints = Footprints::default();
        assert_eq!(seen(&mut footprints, 200), Some(at(200)));
        assert!(footprints.servers.is_empty());
    }

    #[test]
    fn a_new_start_knows_nothing_of_the_old_one() {
        let mut footprints = after(100, &[(200, 201)]);
        assert_eq!(footprints.without_ours(&alice(), Some(at(199)), Some(at(200))), Some(at(200)));
        footprints.left(&server(199, 200), at(300), at(301));
        assert_eq!(footprints.without_ours(&alice(), Some(at(199)), Some(at(300))), Some(at(200)));
    }

    #[test]
    fn a_look_of_a_command_is_ours_too() {
        let mut footprints = after(100, &[(200, 201)]);
        footprints.also(&alice(), at(300), at(301));
        footprints.also(&ServerId::new("bob", ""), at(300), at(301));
        assert_eq!(seen(&mut footprints, 300), Some(at(100)));
        assert_eq!(footprints.all().collect::<Vec<_>>(), [(alice(), at(300), at(301))]);
    }

    #[test]
    fn a_missing_stamp_stays_missing() {
        let mut footprints = after(100, &[(200, 201)]);
        assert_eq!(footprints.without_ours(&alice(), Some(at(0)), None), None);
    }

    #[test]
    fn looks_before_the_stamp_and_servers_that_are_gone_are_forgotten() {
        let mut footprints = after(100, &[(200, 201), (260, 261)]);
        seen(&mut footprints, 260);
        assert_eq!(footprints.servers[&alice()].ours, [(at(260), at(261))]);
        footprints.keep_only(|_| false);
        assert!(footprints.servers.is_empty());
    }
}
