//! One Region's instances and clusters.

use super::failure::Failure;
use super::http::Client;
use super::places::{self, Cluster, Instance, Page, Places};
use super::sign::Api;
use crate::locality::names::{EndpointKind, EndpointName};
use crate::locality::provider::Category;
use aws_credential_types::Credentials;
use std::time::{Duration, Instant};

/// How often a page is asked for again after "too often".
const RETRIES: u32 = 3;
/// Entries of a page, as many as the API gives.
const PAGE: &str = "100";
/// Pages of a listing: more than there is time for, so that one without end takes no memory without end.
const MOST_PAGES: usize = 200;
/// Instances that are asked for by their identifiers; of more, all are listed.
const MOST_FILTERED: usize = 60;

/// The API, as it is asked for one batch.
pub struct Rds<'a> {
    /// How.
    pub client: &'a Client,
    /// Where.
    pub api: Api<'a>,
    /// As whom.
    pub credentials: &'a Credentials,
    /// When all must be answered.
    pub until: Instant,
    /// Waits, and says whether to go on.
    pub pause: &'a dyn Fn(Duration) -> bool,
}

impl Rds<'_> {
    /// What is to be known for these endpoints: clusters where there is an endpoint of one, and then the instances that matter.
    pub fn look(&self, names: &[(&str, &EndpointName)]) -> Result<Places, Failure> {
        let clusters = match names.iter().any(|(_, name)| name.kind != EndpointKind::Instance) {
            true => self.list("DescribeDBClusters", &[], places::clusters)?,
            false => Vec::new(),
        };
        let instances = self.instances(names, &clusters)?;
        Ok(Places::new(instances, clusters))
    }
    fn instances(
        &self,
        names: &[(&str, &EndpointName)],
        clusters: &[Cluster],
    ) -> Result<Vec<Instance>, Failure> {
        let wanted = places::wanted(names.iter().copied(), clusters);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let list = |filter: &[(&str, &str)]| self.list("DescribeDBInstances", filter, places::instances);
        if wanted.len() > MOST_FILTERED {
            return list(&[]);
        }
        let keys: Vec<String> =
            (1..=wanted.len()).map(|number| format!("Filters.Filter.1.Values.Value.{number}")).collect();
        let values = keys.iter().map(String::as_str).zip(wanted);
        let filter: Vec<(&str, &str)> =
            [("Filters.Filter.1.Name", "db-instance-id")].into_iter().chain(values).collect();
        match list(&filter) {
            // An identifier that is gone, or a filter that is not understood: all are listed.
            Err(failure) if failure.category == Category::ProviderError && failure.is_refusal() => list(&[]),
            listed => listed,
        }
    }
    fn list<T>(
        &self,
        action: &str,
        filter: &[(&str, &str)],
        read: fn(&str, &str) -> Result<Page<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut items = Vec::new();
        let mut marker: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut parameters = vec![("Action", action), ("MaxRecords", PAGE)];
            parameters.extend_from_slice(filter);
            parameters.extend(marker.as_deref().map(|marker| ("Marker", marker)));
            let page = read(&self.api.who(), &self.ask(&parameters)?)?;
            items.extend(page.items);
            match page.next {
                None => return Ok(items),
                Some(next) if marker.as_ref() == Some(&next) => break,
                next => marker = next,
            }
        }
        Err(Failure::invalid(&self.api.who(), "its pages do not end"))
    }
    /// One page; asked for again where that was too often and there is time.
    fn ask(&self, parameters: &[(&str, &str)]) -> Result<String, Failure> {
        let (mut pause, mut retries) = (self.client.patience.pause, RETRIES);
        loop {
            let answer = self.api.ask(self.client, Some(self.credentials), parameters, self.until);
            let again = retries > 0
                && answer.as_ref().is_err_and(|failure| failure.category == Category::Throttled)
                && Instant::now() + pause < self.until
                && (self.pause)(pause);
            if !again {
                return answer;
            }
            (pause, retries) = (pause * 2, retries - 1);
        }
    }
}
