//! Which processor something happens on.
//!
//! Waking a thread on another processor costs both ends more than the rest of a statement does. So a session prefers a connection
//! whose packets arrive on the processor that its own thread runs on: there the network card raises its interrupt, or, on one
//! machine, the server's thread runs.

use std::time::{Duration, Instant};

/// It is asked for again so often: it costs a system call, and threads and interrupts stay where they are for long.
const FRESH: Duration = Duration::from_millis(20);

/// A processor's number, as it was a moment ago; unknown by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processor {
    number: Option<u32>,
    asked: Option<Instant>,
}

impl Processor {
    /// Asks for the number, unless that was done a moment ago.
    #[inline]
    pub fn follow(&mut self, now: Instant, number: impl FnOnce() -> Option<u32>) {
        if self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= FRESH) {
            *self = Self { number: number(), asked: Some(now) };
        }
    }
    /// The number, if it is known.
    pub fn number(self) -> Option<u32> {
        self.number
    }
    /// Whether both are known to be the same.
    #[inline]
    pub fn is(self, other: Self) -> bool {
        self.number.is_some() && self.number == other.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_for_again_after_a_while() {
        let (mut one, mut other, now) = (Processor::default(), Processor::default(), Instant::now());
        assert!(!one.is(other), "what is unknown is not the same");
        one.follow(now, || Some(0));
        other.follow(now, || Some(1));
        assert!(!one.is(other));
        one.follow(now + FRESH / 2, || Some(1));
        assert!(!one.is(other), "it is too early");
        one.follow(now + FRESH, || Some(1));
        assert!(one.is(other));
    }
}
