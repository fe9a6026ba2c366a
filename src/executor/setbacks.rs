//! Addresses whose mail was not accepted, and when to try again: soon, then ever later.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::notify::DeliveryError;

/// The longest wait after trouble that may pass by itself.
const TROUBLE: SignedDuration = SignedDuration::from_mins(15);
/// The wait after a refusal for good: an address may be mended, but no mailbox is knocked at every minute.
const REFUSAL: SignedDuration = SignedDuration::from_hours(24);

/// What is remembered of addresses in trouble. A restart forgets it, and then everything is tried.
#[derive(Debug)]
pub struct Setbacks {
    cycle: SignedDuration,
    known: Mutex<BTreeMap<String, Setback>>,
}

#[derive(Debug)]
struct Setback {
    times: u32,
    again: Timestamp,
    error: DeliveryError,
}

/// Why an address is not tried now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it is tried again.
    pub again: Timestamp,
    /// What came back the last time.
    pub error: DeliveryError,
}

impl Setbacks {
    /// None yet. `cycle` is the time until everything would be tried again anyhow.
    pub fn new(cycle: Duration) -> Self {
        Self { cycle: cycle.try_into().unwrap_or(TROUBLE), known: Mutex::default() }
    }

    /// Why `address` is not tried now, if it is not.
    pub fn pause(&self, address: &str, now: Timestamp) -> Option<Pause> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Setback { again, error, .. } = known.get(address)?;
        // A clock that was set back must not silence an address for longer than any wait is.
        let waits = now < *again && again.duration_since(now) <= REFUSAL;
        waits.then(|| Pause { again: *again, error: error.clone() })
    }

    /// Remembers how a delivery ended.
    pub fn ended(&self, address: &str, delivery: Result<(), &DeliveryError>, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Err(error) = delivery else {
            known.remove(address);
            return;
        };
        let times = known.get(address).map_or(0, |setback| setback.times).saturating_add(1);
        let wait = match error {
            DeliveryError::Retryable(_) => self.after(times),
            DeliveryError::Permanent(_) => REFUSAL,
        };
        let again = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        known.insert(address.to_owned(), Setback { times, again, error: error.clone() });
    }

    /// Next cycle after the first setback, then one, three, seven … cycles are left out.
    fn after(&self, times: u32) -> SignedDuration {
        let cycles = 2_i32.checked_pow(times - 1).map_or(i32::MAX, |all| all - 1);
        self.cycle.checked_mul(cycles).map_or(TROUBLE, |wait| wait.min(TROUBLE))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn again(setbacks: &Setbacks, address: &str, now: i64) -> Option<Timestamp> {
        setbacks.pause(address, at(now)).map(|pause| pause.again)
    }

    fn down() -> DeliveryError {
        DeliveryError::Retryable("down".to_owned())
    }

    #[test]
    fn trouble_is_tried_again_soon_then_ever_later_but_never_given_up() {
        let setbacks = Setbacks::new(Duration::from_secs(60));
        let waits: Vec<i64> = (0..40)
            .map(|_| {
                setbacks.ended("nora@example.org", Err(&down()), at(0));
                again(&setbacks, "nora@example.org", 0).map_or(0, Timestamp::as_second)
            })
            .collect();
        assert_eq!(waits[..6], [0, 60, 180, 420, 900, 900]);
        assert_eq!(waits[39], 900);
    }

    #[test]
    fn an_accepted_mail_ends_the_trouble_of_that_address_only() {
        let setbacks = Setbacks::new(Duration::from_secs(60));
        for address in ["nora@example.org", "carl@example.org"] {
            setbacks.ended(address, Err(&down()), at(0));
            setbacks.ended(address, Err(&down()), at(0));
        }
        setbacks.ended("nora@example.org", Ok(()), at(1));
        assert_eq!(again(&setbacks, "nora@example.org", 1), None);
        assert_eq!(again(&setbacks, "carl@example.org", 1), Some(at(60)));
    }

    #[test]
    fn a_refused_address_is_left_alone_for_a_day() {
        let setbacks = Setbacks::new(Duration::from_secs(60));
        let refused = DeliveryError::Permanent("no such mailbox".to_owned());
        setbacks.ended("gone@example.org", Err(&refused), at(0));
        assert_eq!(again(&setbacks, "gone@example.org", 86_399), Some(at(86_400)));
        assert_eq!(again(&setbacks, "gone@example.org", 86_400), None);
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nobody() {
        let setbacks = Setbacks::new(Duration::from_secs(60));
        setbacks.ended("nora@example.org", Err(&down()), at(1_000_000));
        setbacks.ended("nora@example.org", Err(&down()), at(1_000_000));
        assert_eq!(again(&setbacks, "nora@example.org", 0), None);
    }
}
