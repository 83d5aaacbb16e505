//! The last descriptors of the process are kept for those who manage it: what carries clients' traffic does without them.

use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd, AsRawFd};

/// Descriptors that are kept.
const KEPT: u64 = 128;

/// Whether a descriptor is one of the last that the process may have. The system gives the lowest number that is free, so that
/// a high one tells that few are.
pub(crate) fn is_among_the_last(descriptor: &impl AsFd) -> bool {
    let limit = getrlimit(Resource::Nofile).current;
    let number = u64::try_from(descriptor.as_fd().as_raw_fd()).unwrap_or(0);
    limit.is_some_and(|limit| is_high(number, limit))
}

/// Of a low limit an eighth is kept.
fn is_high(number: u64, limit: u64) -> bool {
    number >= limit - KEPT.min(limit / 8)
}

#[cfg(test)]
mod tests {
    use super::is_high;

    #[test]
    fn the_last_numbers_are_high() {
        for (number, limit, high) in [
            (895, 1_024, false),
            (896, 1_024, true),
            (55, 64, false),
            (56, 64, true),
            (0, 7, false),
            (1_048_447, 1_048_576, false),
            (1_048_448, 1_048_576, true),
        ] {
            assert_eq!(is_high(number, limit), high, "{number} of {limit}");
        }
    }
}
