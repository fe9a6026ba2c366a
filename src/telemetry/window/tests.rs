use super::*;

/// A window with one reader.
struct Watched {
    window: Window,
    polls: Mark,
    told: Mark,
}

impl Watched {
    fn new(now: Instant) -> Self {
        Self { window: Window::new(now), polls: 0, told: 0 }
    }

    fn add(&mut self, now: Instant, poll: Poll) {
        self.polls += 1;
        self.window.add(self.polls, now, poll);
    }

    fn drain(&mut self) -> Seen {
        self.window.since(std::mem::replace(&mut self.told, self.polls))
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn read(percent: f64, reach: Duration) -> Poll {
    Poll { sm: Ratio::percent(percent), dram: Ratio::percent(0.0), reach, ..Poll::default() }
}

fn sm(seen: &Seen) -> Option<f64> {
    seen.sm.map(Ratio::get)
}

#[test]
fn polls_that_reach_back_to_each_other_leave_no_gap() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    for i in 1..=30 {
        window.add(start + 2 * i * SECOND, read(0.0, 2 * SECOND));
    }
    let seen = window.drain();
    assert_eq!((seen.covered, seen.largest_gap), (60 * SECOND, Duration::ZERO));
    assert_eq!((sm(&seen), seen.unreadable), (Some(0.0), None));
}

#[test]
fn the_peak_counts_and_not_the_last_reading() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    for (i, percent) in [0.0, 80.0, 0.0].into_iter().enumerate() {
        window.add(start + (i as u32 + 1) * SECOND, read(percent, SECOND));
    }
    assert_eq!(sm(&window.drain()), Some(0.8));
}

#[test]
fn a_poll_that_reaches_back_too_little_leaves_a_gap() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + 30 * SECOND, read(0.0, 10 * SECOND));
    let seen = window.drain();
    assert_eq!((seen.covered, seen.largest_gap), (10 * SECOND, 20 * SECOND));
}

#[test]
fn no_poll_covers_more_than_the_time_that_passed() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + SECOND, read(0.0, 10 * SECOND));
    assert_eq!(window.drain().covered, SECOND);
}

#[test]
fn a_zero_read_before_the_card_was_lost_is_no_proof_of_rest() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + SECOND, read(0.0, SECOND));
    window.add(start + 2 * SECOND, Poll::unreadable("lost"));
    let seen = window.drain();
    assert_eq!((seen.sm, seen.dram), (None, None));
    assert_eq!(seen.unreadable.as_deref(), Some("lost"));
}

#[test]
fn work_seen_before_the_card_was_lost_is_not_forgotten() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + SECOND, read(70.0, SECOND));
    window.add(start + 2 * SECOND, Poll::unreadable("lost"));
    let seen = window.drain();
    assert_eq!((sm(&seen), seen.dram), (Some(0.7), None));
    assert!(seen.unreadable.is_some());
}

#[test]
fn an_outage_grows_over_the_windows_it_spans() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + 50 * SECOND, Poll::unreadable("lost"));
    assert_eq!(window.drain().largest_gap, 50 * SECOND);
    window.add(start + 100 * SECOND, Poll::unreadable("lost"));
    let seen = window.drain();
    assert_eq!((seen.covered, seen.largest_gap), (Duration::ZERO, 100 * SECOND));
}

#[test]
fn a_ring_that_reaches_over_a_failed_poll_heals_it() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + 2 * SECOND, Poll::unreadable("busy"));
    window.add(start + 4 * SECOND, read(0.0, 4 * SECOND));
    let seen = window.drain();
    assert_eq!((seen.covered, seen.largest_gap), (4 * SECOND, Duration::ZERO));
    assert_eq!(seen.unreadable, None);
}

#[test]
fn two_looks_without_a_poll_between_are_not_two_readings_of_zero() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    window.add(start + SECOND, read(0.0, SECOND));
    window.drain();
    let seen = window.drain();
    assert_eq!((seen.sm, seen.covered), (None, Duration::ZERO));
    assert!(seen.unreadable.is_some());
}

#[test]
fn draining_often_covers_no_less_than_draining_once() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    let mut covered = Duration::ZERO;
    for i in 1..=10 {
        window.add(start + 2 * i * SECOND, read(0.0, 2 * SECOND));
        covered += window.drain().covered;
    }
    assert_eq!(covered, 20 * SECOND);
}

#[test]
fn an_engine_that_failed_once_keeps_what_it_showed() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    for (i, value) in [Ratio::percent(9.0), None].into_iter().enumerate() {
        let engines = BTreeMap::from([(Engine::Encode, value)]);
        let poll = Poll { engines, ..read(0.0, SECOND) };
        window.add(start + (i as u32 + 1) * SECOND, poll);
    }
    assert_eq!(window.drain().engines, BTreeMap::from([(Engine::Encode, Ratio::percent(9.0))]));
}

#[test]
fn an_engine_that_rested_before_it_failed_is_not_known_to_rest() {
    let start = Instant::now();
    let mut window = Watched::new(start);
    for (i, value) in [Ratio::percent(0.0), None].into_iter().enumerate() {
        let engines = BTreeMap::from([(Engine::Tensor, value)]);
        window.add(start + (i as u32 + 1) * SECOND, Poll { engines, ..read(0.0, SECOND) });
    }
    assert_eq!(window.drain().engines, BTreeMap::from([(Engine::Tensor, None)]));
}

#[test]
fn each_of_two_readers_is_told_the_whole_of_its_own_time() {
    let start = Instant::now();
    let mut window = Window::new(start);
    for (i, percent) in [0.0, 80.0, 0.0, 0.0].into_iter().enumerate() {
        window.add(i as u64 + 1, start + (i as u32 + 1) * SECOND, read(percent, SECOND));
    }
    let told = |mark| {
        let seen = window.since(mark);
        (sm(&seen), seen.covered)
    };
    assert_eq!(told(0), (Some(0.8), 4 * SECOND));
    assert_eq!(told(1), (Some(0.8), 3 * SECOND), "whatever another one was told");
    assert_eq!(told(2), (Some(0.0), 2 * SECOND));
}

#[test]
fn polls_of_long_ago_are_forgotten_and_that_is_known() {
    let start = Instant::now();
    let mut window = Window::new(start);
    for i in 1..=400 {
        window.add(i, start + 2 * i as u32 * SECOND, read(if i == 1 { 80.0 } else { 0.0 }, 2 * SECOND));
    }
    assert_eq!(window.forgotten(), 99, "what is older than ten minutes");
    let seen = window.since(0);
    assert_eq!((sm(&seen), seen.covered), (Some(0.0), 602 * SECOND));
}

#[test]
fn however_fast_polls_come_only_so_many_are_kept() {
    let start = Instant::now();
    let mut window = Window::new(start);
    for i in 1..=5000 {
        window.add(i, start, read(0.0, SECOND));
    }
    assert_eq!(window.forgotten(), 5000 - 4096);
}
