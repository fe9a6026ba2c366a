//! Sentences that are said of thousands and kept once.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Those said so far.
#[derive(Debug, Default)]
pub struct Sentences(BTreeSet<Arc<str>>);

impl Sentences {
    /// The sentence, shared with everybody of whom it was said before.
    pub fn shared(&mut self, sentence: &str) -> Arc<str> {
        if let Some(known) = self.0.get(sentence) {
            return Arc::clone(known);
        }
        let new: Arc<str> = sentence.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_is_kept_once() {
        let mut sentences = Sentences::default();
        let first = sentences.shared("it is idle");
        assert!(Arc::ptr_eq(&first, &sentences.shared("it is idle")));
        assert_eq!(&*sentences.shared("it works"), "it works");
    }
}
