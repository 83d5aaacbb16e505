//! One batch of questions, answered.

use super::Shared;
use super::credentials::{Cache, Finder};
use super::environment::Environment;
use super::failure::Failure;
use super::http::Client;
use super::metadata::Metadata;
use super::own;
use super::places::Places;
use super::rds::Rds;
use super::sign::Api;
use crate::locality::names::EndpointName;
use crate::locality::provider::{Category, Location, Subject};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is known from one batch to the next.
pub struct Asker {
    shared: Arc<Shared>,
    client: Client,
    environment: Environment,
    metadata: Metadata,
    credentials: Cache,
    /// Where this proxy runs, which does not change while it does.
    own: Option<Location>,
    turns: Turns,
    told: Told,
}

type Names = Vec<(Arc<str>, EndpointName)>;

impl Asker {
    /// Asks nobody yet.
    pub fn new(environment: Environment, client: Client, shared: Arc<Shared>) -> Self {
        let (metadata, credentials, turns, told) = Default::default();
        Self { shared, client, environment, metadata, credentials, own: None, turns, told }
    }
    /// Answers these, each as soon as it is known, or all by `until`.
    pub fn ask(&mut self, subjects: &[Subject], until: Instant) {
        if subjects.contains(&Subject::Own) {
            let own = self.own(until);
            self.shared.answer(&Subject::Own, &own);
        }
        let mut regions = Vec::from_iter(by_region(&self.shared, subjects));
        regions.sort_by_key(|(region, _)| self.turns.of(region));
        for (region, names) in regions {
            let in_time = Instant::now() < until;
            let places = self.places(&region, &names, until);
            if self.shared.is_stopping() {
                return;
            }
            if in_time {
                self.turns.take(&region, places.is_err());
            }
            self.told.take(format!("where endpoints of {region} are"), places.as_ref().err());
            for (host, name) in names {
                let answer = match &places {
                    Ok(places) => places.locate(&host, &name),
                    Err(failure) => Err(failure.category),
                };
                self.shared.answer(&Subject::Endpoint(host), &answer);
            }
        }
    }
    fn own(&mut self, until: Instant) -> Result<Location, Category> {
        if self.own.is_none() {
            let located = own::locate(&self.client, &self.environment, &mut self.metadata, until);
            if !self.shared.is_stopping() {
                self.told.take("where this proxy runs".into(), located.as_ref().err());
            }
            self.own = Some(located.map_err(|failure| failure.category)?);
        }
        Ok(self.own.clone().unwrap_or_default())
    }
    fn places(&mut self, region: &str, names: &Names, until: Instant) -> Result<Places, Failure> {
        let looked = self.look(region, names, until);
        match looked {
            // Somebody may have changed them since they were found.
            Err(failure) if failure.spoils_credentials => {
                self.credentials.forget();
                self.look(region, names, until)
            }
            looked => looked,
        }
    }
    fn look(&mut self, region: &str, names: &Names, until: Instant) -> Result<Places, Failure> {
        let (client, environment, metadata) = (&self.client, &self.environment, &mut self.metadata);
        let credentials =
            self.credentials.get(&mut Finder { client, environment, metadata, region, until })?;
        let endpoint = environment.endpoint("AWS_ENDPOINT_URL_RDS");
        let api = Api { service: "rds", version: "2014-10-31", region, endpoint };
        let pause = |pause: Duration| self.shared.pause(pause);
        let rds = Rds { client, api, credentials: &credentials, until, pause: &pause };
        rds.look(&names.iter().map(|(host, name)| (&**host, name)).collect::<Vec<_>>())
    }
}

/// Endpoints by their Regions. What has not the form of one is not found.
fn by_region(shared: &Shared, subjects: &[Subject]) -> BTreeMap<String, Names> {
    let mut regions = BTreeMap::<String, Names>::new();
    for subject in subjects {
        let Subject::Endpoint(host) = subject else { continue };
        match EndpointName::parse(host) {
            Some(name) => regions.entry(name.region.clone()).or_default().push((Arc::clone(host), name)),
            None => shared.answer(subject, &Err(Category::NotFound)),
        }
    }
    regions
}

/// The order in which Regions are asked: those that fail take the time of a batch, and must not take it from the others each time.
#[derive(Default)]
struct Turns {
    taken: u64,
    /// Whether it failed then, and which turn it had last.
    last: HashMap<String, (bool, u64)>,
}

impl Turns {
    /// Who answers is asked before who fails, and who has waited longest before the others.
    fn of(&self, region: &str) -> (bool, u64) {
        self.last.get(region).copied().unwrap_or_default()
    }
    fn take(&mut self, region: &str, failed: bool) {
        self.taken += 1;
        self.last.insert(region.to_owned(), (failed, self.taken));
    }
}

/// Of each thing that AWS does not tell why, as the log has it, so that each change is logged once.
#[derive(Default)]
struct Told(HashMap<String, Category>);

impl Told {
    fn take(&mut self, what: String, failure: Option<&Failure>) {
        let Some(failure) = failure else {
            if self.0.remove(&what).is_some() {
                log::info!("locality: AWS tells {what} again");
            }
            return;
        };
        if self.0.get(&what) != Some(&failure.category) {
            log::warn!("locality: AWS does not tell {what} ({}): {failure}", failure.category.as_str());
            self.0.insert(what, failure.category);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::logged;

    #[test]
    fn regions_that_fail_take_turns_behind_those_that_answer() {
        let mut turns = Turns::default();
        let order = |turns: &Turns| {
            let mut regions = ["a", "b", "c"];
            regions.sort_by_key(|region| turns.of(region));
            regions
        };
        for expected in ["a", "b", "c", "a"] {
            // The first to be asked takes all the time there is.
            let first = order(&turns)[0];
            assert_eq!(first, expected);
            turns.take(first, true);
        }
        turns.take("b", false);
        assert_eq!(order(&turns), ["b", "c", "a"]);
    }

    #[test]
    fn each_change_is_told_once() {
        let mut told = Told::default();
        let failure = |category| Failure::new(category, "nobody is there").advising("go there");
        let lines = logged(|| {
            told.take("this".into(), None);
            for category in [Category::Timeout, Category::Timeout, Category::Throttled] {
                told.take("this".into(), Some(&failure(category)));
            }
            told.take("that".into(), Some(&failure(Category::Timeout)));
            told.take("this".into(), None);
            told.take("this".into(), None);
        });
        assert_eq!(
            lines,
            [
                "locality: AWS does not tell this (timeout): nobody is there; go there",
                "locality: AWS does not tell this (throttled): nobody is there; go there",
                "locality: AWS does not tell that (timeout): nobody is there; go there",
                "locality: AWS tells this again",
            ]
        );
    }
}
