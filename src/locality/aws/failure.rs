//! Why a question to AWS got no answer: a category for whoever asked, and words for the log.

use crate::locality::provider::Category;
use std::fmt;

/// A failed question. Its words never hold what was sent or answered, but for an error code of AWS's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub category: Category,
    /// What was asked and what came of it.
    pub what: String,
    /// What to do about it, if more is known than follows from the category.
    pub remedy: &'static str,
    /// The HTTP status, if there was an answer that was no success.
    pub status: Option<u16>,
    /// The credentials are of no use any more.
    pub spoils_credentials: bool,
}

impl Failure {
    /// Without a remedy.
    pub fn new(category: Category, what: impl Into<String>) -> Self {
        Self { category, what: what.into(), remedy: "", status: None, spoils_credentials: false }
    }
    /// Something in the environment or a file cannot be used.
    pub fn configuration(what: impl Into<String>, remedy: &'static str) -> Self {
        Self::new(Category::ProviderError, what).advising(remedy)
    }
    /// An answer that makes no sense.
    pub fn invalid(who: &str, why: impl fmt::Display) -> Self {
        Self::new(Category::InvalidAnswer, format!("{who} answered what makes no sense: {why}"))
    }
    /// Time was over before it could be asked.
    pub fn late(who: &str) -> Self {
        Self::new(Category::Timeout, format!("no time was left to ask {who}"))
    }
    /// Whether it was understood, and nothing will come of asking the same again.
    pub fn is_refusal(&self) -> bool {
        self.status.is_some_and(|status| (400..500).contains(&status))
    }
    /// With what to do, unless it is said already.
    pub fn advising(mut self, remedy: &'static str) -> Self {
        if self.remedy.is_empty() {
            self.remedy = remedy;
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match (self.remedy, self.category) {
            ("", Category::AccessDenied) => RENEW,
            ("", Category::Throttled) => SELDOM,
            ("", Category::InvalidAnswer) => IMPOSTOR,
            (remedy, _) => remedy,
        };
        f.write_str(&self.what)?;
        if !remedy.is_empty() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

/// For who may not ask the RDS API.
pub const GRANT: &str = "allow rds:DescribeDBInstances and rds:DescribeDBClusters to the credentials' user or role (docs/locality.md)";
const RENEW: &str = "give pointsman valid credentials (docs/locality.md)";
const SELDOM: &str = "a longer refresh_interval_seconds asks less often (docs/locality.md)";
const IMPOSTOR: &str = "see whether a proxy or another server answers in its place";
const CLOCK: &str = "check the secret key and this machine's clock, which may be off by 5 minutes at most";

/// What an AWS API means that answers with an HTTP status that is no success, and perhaps with an error code. `who` is the API and
/// where it is.
pub fn of_answer(who: &str, status: u16, code: Option<&str>) -> Failure {
    let what = match code {
        Some(code) => format!("{who} answered {code} (status {status})"),
        None => format!("{who} answered with status {status}"),
    };
    let failure = |category| Failure { status: Some(status), ..Failure::new(category, what.clone()) };
    match (code.unwrap_or_default(), status) {
        ("Throttling" | "ThrottlingException" | "ThrottledException" | "RequestThrottled", _)
        | ("RequestThrottledException" | "RequestLimitExceeded" | "TooManyRequestsException", _)
        | ("SlowDown" | "PriorRequestNotComplete" | "BandwidthLimitExceeded", _) => {
            failure(Category::Throttled)
        }
        ("AccessDenied" | "AccessDeniedException" | "UnauthorizedOperation" | "NotAuthorized", _) => {
            failure(Category::AccessDenied).advising(GRANT)
        }
        ("SignatureDoesNotMatch" | "RequestTimeTooSkewed" | "RequestExpired", _) => {
            failure(Category::AccessDenied).advising(CLOCK)
        }
        ("ExpiredToken" | "ExpiredTokenException" | "InvalidClientTokenId" | "InvalidToken", _)
        | ("UnrecognizedClientException" | "AuthFailure" | "InvalidAccessKeyId", _)
        | ("IncompleteSignature" | "MissingAuthenticationToken" | "InvalidIdentityToken", _) => {
            Failure { spoils_credentials: true, ..failure(Category::AccessDenied).advising(RENEW) }
        }
        ("OptInRequired" | "SubscriptionRequiredException", _) => {
            failure(Category::AccessDenied).advising("the account has not enabled this Region")
        }
        (_, 429 | 503) => failure(Category::Throttled),
        (_, 401 | 403) => failure(Category::AccessDenied),
        (_, 300..=399) => failure(Category::InvalidAnswer).advising("redirects are not followed"),
        (_, 200..=299) => failure(Category::InvalidAnswer),
        _ => failure(Category::ProviderError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_and_statuses_have_categories() {
        use Category::{AccessDenied, InvalidAnswer, ProviderError, Throttled};
        for (status, code, category, spoils) in [
            (400, Some("Throttling"), Throttled, false),
            (400, Some("ThrottlingException"), Throttled, false),
            (503, Some("RequestLimitExceeded"), Throttled, false),
            (503, None, Throttled, false),
            (429, None, Throttled, false),
            (403, Some("AccessDenied"), AccessDenied, false),
            (400, Some("AccessDeniedException"), AccessDenied, false),
            (403, Some("UnauthorizedOperation"), AccessDenied, false),
            (403, Some("SignatureDoesNotMatch"), AccessDenied, false),
            (403, Some("RequestTimeTooSkewed"), AccessDenied, false),
            (403, Some("ExpiredToken"), AccessDenied, true),
            (403, Some("InvalidClientTokenId"), AccessDenied, true),
            (403, None, AccessDenied, false),
            (302, None, InvalidAnswer, false),
            (500, Some("InternalFailure"), ProviderError, false),
            (404, None, ProviderError, false),
        ] {
            let failure = of_answer("rds", status, code);
            assert_eq!(
                (failure.category, failure.spoils_credentials),
                (category, spoils),
                "{code:?} {status}"
            );
            assert!(failure.what.contains(&status.to_string()), "{failure}");
        }
    }

    #[test]
    fn words_say_what_and_what_to_do() {
        let denied = of_answer("the RDS API of eu-north-1", 403, Some("AccessDenied")).to_string();
        assert!(denied.contains("eu-north-1 answered AccessDenied"), "{denied}");
        assert!(denied.contains("rds:DescribeDBInstances and rds:DescribeDBClusters"), "{denied}");
        let skewed = of_answer("rds", 403, Some("SignatureDoesNotMatch")).to_string();
        assert!(skewed.contains("clock"), "{skewed}");
        let first = Failure::new(Category::Timeout, "x").advising("one").advising("two");
        assert_eq!(first.to_string(), "x; one");
        for (failure, remedy) in [
            (of_answer("rds", 400, Some("Throttling")), "refresh_interval_seconds"),
            (of_answer("rds", 403, None), "credentials"),
            (Failure::invalid("rds", "it is no XML"), "proxy"),
        ] {
            let words = failure.to_string();
            assert!(words.starts_with(&format!("{}; ", failure.what)) && words.contains(remedy), "{words}");
        }
    }
}
