//! Answers kept with their ETag, so that asking again leaves no trace at the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::HeaderValue;

/// Bodies kept, in bytes, all servers together.
const CAPACITY: usize = 16 << 20;

/// An answer that a later 304 refers to.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) etag: HeaderValue,
    pub(super) body: Arc<[u8]>,
}

/// The last answer of each address.
#[derive(Default)]
pub(super) struct Remembered(Mutex<Store>);

#[derive(Default)]
struct Store {
    by_address: HashMap<String, Kept>,
    bytes: usize,
}

impl Remembered {
    pub(super) fn get(&self, address: &str) -> Option<Kept> {
        self.store().by_address.get(address).cloned()
    }

    /// Keeps an answer. When full, everything is forgotten: that costs one whole answer each.
    pub(super) fn keep(&self, address: &str, kept: Kept) {
        let mut store = self.store();
        store.forget(address);
        let size = address.len() + kept.body.len();
        if store.bytes + size > CAPACITY {
            *store = Store::default();
        }
        store.bytes += size;
        store.by_address.insert(address.to_owned(), kept);
    }

    pub(super) fn forget(&self, address: &str) {
        self.store().forget(address);
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn forget(&mut self, address: &str) {
        if let Some(old) = self.by_address.remove(address) {
            self.bytes -= address.len() + old.body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(size: usize) -> Kept {
        Kept { etag: HeaderValue::from_static("\"x\""), body: vec![0; size].into() }
    }

    #[test]
    fn what_is_kept_stays_within_its_bound() {
        let remembered = Remembered::default();
        for n in 0..10 {
            remembered.keep(&format!("server {n}"), answer(4 << 20));
            assert!(remembered.store().bytes <= CAPACITY);
        }
        assert!(remembered.get("server 9").is_some());
        assert!(remembered.get("server 0").is_none());
    }

    #[test]
    fn a_newer_answer_replaces_the_older_one_and_its_size() {
        let remembered = Remembered::default();
        for size in [1000, 10, 20] {
            remembered.keep("server", answer(size));
        }
        assert_eq!(remembered.store().bytes, "server".len() + 20);
    }
}
