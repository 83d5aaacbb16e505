//! AWS's target statuses as states, and how often each state is polled.

use crate::hostgroups::BgdStatus;
use std::time::Duration;

/// The state that AWS's status text stands for, in any case: `None` for an empty text, [`BgdStatus::None`] for an
/// unknown one, which therefore is a step backward from every active state (contract: "Backward And Unrecognized Phases").
pub fn state_of(status: &str) -> Option<BgdStatus> {
    const STATES: [(&str, BgdStatus); 5] = [
        ("AVAILABLE", BgdStatus::Available),
        ("SWITCHOVER_INITIATED", BgdStatus::WriterSwitchoverInitiated),
        ("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress),
        ("SWITCHOVER_IN_POST_PROCESSING", BgdStatus::WriterSwitchoverPostProcessing),
        ("SWITCHOVER_COMPLETED", BgdStatus::WriterSwitchoverCompleted),
    ];
    if status.is_empty() {
        return None;
    }
    let known = STATES.iter().find(|(text, _)| text.eq_ignore_ascii_case(status));
    Some(known.map_or(BgdStatus::None, |(_, state)| *state))
}

/// The polling interval that replaces the configured one while a state lasts.
pub fn interval_of(status: BgdStatus) -> Option<Duration> {
    match status {
        BgdStatus::Available => Some(Duration::from_millis(250)),
        BgdStatus::WriterSwitchoverInitiated
        | BgdStatus::WriterSwitchoverInProgress
        | BgdStatus::WriterSwitchoverPostProcessing => Some(Duration::from_millis(100)),
        BgdStatus::None
        | BgdStatus::WriterSwitchoverCompleted
        | BgdStatus::ReaderSwitchoverInProgress
        | BgdStatus::SwitchoverCompleted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_known_in_any_case() {
        assert_eq!(state_of("AVAILABLE"), Some(BgdStatus::Available));
        assert_eq!(state_of("switchover_initiated"), Some(BgdStatus::WriterSwitchoverInitiated));
        assert_eq!(state_of("SWITCHOVER_IN_PROGRESS"), Some(BgdStatus::WriterSwitchoverInProgress));
        assert_eq!(
            state_of("SWITCHOVER_IN_POST_PROCESSING"),
            Some(BgdStatus::WriterSwitchoverPostProcessing)
        );
        assert_eq!(state_of("SWITCHOVER_COMPLETED"), Some(BgdStatus::WriterSwitchoverCompleted));
    }

    #[test]
    fn an_unknown_status_is_none_and_an_empty_one_is_nothing() {
        assert_eq!(state_of("PROVISIONING"), Some(BgdStatus::None));
        assert_eq!(state_of(" AVAILABLE"), Some(BgdStatus::None));
        assert_eq!(state_of(""), None);
    }

    #[test]
    fn only_the_writer_phases_are_polled_faster() {
        assert_eq!(interval_of(BgdStatus::Available), Some(Duration::from_millis(250)));
        assert_eq!(interval_of(BgdStatus::WriterSwitchoverInProgress), Some(Duration::from_millis(100)));
        assert_eq!(interval_of(BgdStatus::ReaderSwitchoverInProgress), None);
        assert_eq!(interval_of(BgdStatus::None), None);
    }
}
