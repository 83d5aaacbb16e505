//! The phases of a switchover, as AWS publishes them and as the daemon shows them.

/// What AWS publishes, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// AVAILABLE
    Available,
    /// SWITCHOVER_INITIATED
    Initiated,
    /// SWITCHOVER_IN_PROGRESS
    InProgress,
    /// SWITCHOVER_IN_POST_PROCESSING
    PostProcessing,
    /// SWITCHOVER_COMPLETED, of the target alone
    Completed,
}

impl Phase {
    /// From the first to the last.
    pub const ALL: [Self; 5] =
        [Self::Available, Self::Initiated, Self::InProgress, Self::PostProcessing, Self::Completed];

    /// AWS's word for it.
    pub fn published(self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Initiated => "SWITCHOVER_INITIATED",
            Self::InProgress => "SWITCHOVER_IN_PROGRESS",
            Self::PostProcessing => "SWITCHOVER_IN_POST_PROCESSING",
            Self::Completed => "SWITCHOVER_COMPLETED",
        }
    }

    /// The status that a deployment has then.
    pub fn status(self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Initiated => "WRITER_SWITCHOVER_INITIATED",
            Self::InProgress => "WRITER_SWITCHOVER_IN_PROGRESS",
            Self::PostProcessing => "WRITER_SWITCHOVER_POST_PROCESSING",
            Self::Completed => "READER_SWITCHOVER_IN_PROGRESS",
        }
    }
}
