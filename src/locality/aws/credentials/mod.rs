//! Who pointsman is at AWS: credentials, found in the order of AWS's own SDKs, and kept until shortly before they expire.
//!
//! 1. Variables: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
//! 2. Web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN
//! 3. The profile of ~/.aws/config and ~/.aws/credentials
//! 4. The container's credentials, of ECS and of EKS Pod Identity
//! 5. The role of the EC2 instance
//!
//! The first that is configured counts; where it fails, no later one is asked.

mod answer;
mod container;
mod process;
mod profile;
mod sts;

use super::environment::Environment;
use super::failure::Failure;
use super::http::Client;
use super::metadata::Metadata;
use crate::locality::provider::Category;
use aws_credential_types::Credentials;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// They are renewed this long before they expire.
const EARLY: Duration = Duration::from_secs(5 * 60);
/// Those that expire never are looked up again after that, since files change.
const LOOK: Duration = Duration::from_secs(5 * 60);
/// Where no renewal succeeds, the next attempt is made after that.
const PAUSE: Duration = Duration::from_secs(30);

/// Of the keys themselves in a file or variable.
const STATIC: &str = "static";

/// What finding them needs.
pub struct Finder<'a> {
    /// Asks.
    pub client: &'a Client,
    /// Tells what is configured.
    pub environment: &'a Environment,
    /// Has the instance's role.
    pub metadata: &'a mut Metadata,
    /// The Region in which STS is asked where nothing names one.
    pub region: &'a str,
    /// When they must be there.
    pub until: Instant,
}

/// The last ones.
#[derive(Default)]
pub struct Cache {
    kept: Option<(Credentials, Instant)>,
}

impl Cache {
    /// Those that are kept, or new ones.
    pub fn get(&mut self, finder: &mut Finder<'_>) -> Result<Credentials, Failure> {
        let now = Instant::now();
        if let Some((credentials, _)) = self.kept.as_ref().filter(|(_, until)| *until > now) {
            return Ok(credentials.clone());
        }
        match finder.find() {
            Ok(credentials) => {
                self.kept =
                    Some((credentials.clone(), now + use_for(credentials.expiry(), SystemTime::now())));
                Ok(credentials)
            }
            Err(failure) => {
                // Those that have not expired serve on.
                let kept = self.kept.take().map(|(credentials, _)| credentials);
                let kept = kept.filter(|kept| kept.expiry().is_some_and(|expiry| expiry > SystemTime::now()));
                let kept = kept.ok_or(failure)?;
                self.kept = Some((kept.clone(), now + PAUSE));
                Ok(kept)
            }
        }
    }
    /// They are of no use.
    pub fn forget(&mut self) {
        self.kept = None;
    }
}

/// How long new ones are used.
fn use_for(expiry: Option<SystemTime>, now: SystemTime) -> Duration {
    let Some(expiry) = expiry else { return LOOK };
    let left = expiry.duration_since(now).unwrap_or_default();
    left.checked_sub(EARLY).unwrap_or(PAUSE).max(PAUSE)
}

impl Finder<'_> {
    fn find(&mut self) -> Result<Credentials, Failure> {
        let environment = self.environment;
        if let Some(credentials) = of_variables(environment)? {
            return Ok(credentials);
        }
        if let Some((file, role)) = of_web_identity(environment)? {
            let session = environment.get("AWS_ROLE_SESSION_NAME");
            return sts::with_web_identity(self, &sts::Role::new(role, session), Path::new(file));
        }
        if let Some(credentials) = profile::find(self)? {
            return Ok(credentials);
        }
        if container::is_configured(environment) {
            return container::find(self);
        }
        self.of_instance()
    }
    /// The role of the instance, by its metadata.
    fn of_instance(&mut self) -> Result<Credentials, Failure> {
        const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
        const WHO: &str = "the instance metadata service";
        let remedy = "give pointsman credentials (docs/locality.md)";
        let absent = || {
            Failure::new(
                Category::AccessDenied,
                "there are no AWS credentials: none are configured, and the instance has no role",
            )
            .advising(remedy)
        };
        let mut get = |path: &str| {
            let got = self.metadata.get(self.client, self.environment, path, self.until);
            got.map_err(|failure| Failure {
                what: format!("no AWS credentials are configured, and {}", failure.what),
                ..failure.advising(remedy)
            })
        };
        let roles = get(ROLES)?.ok_or_else(absent)?;
        let role = roles.lines().next().unwrap_or_default().trim();
        if role.is_empty() {
            return Err(absent());
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@-_".contains(&byte);
        if role.len() > 128 || !role.bytes().all(is_name) {
            return Err(Failure::invalid(WHO, "it names no role"));
        }
        let answer = get(&format!("{ROLES}{role}"))?.ok_or_else(absent)?;
        answer::read_json(WHO, &answer)
    }
}

fn of_variables(environment: &Environment) -> Result<Option<Credentials>, Failure> {
    match (environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")) {
        (Some(key), Some(secret)) => {
            let token = environment.get("AWS_SESSION_TOKEN").map(str::to_owned);
            Ok(Some(Credentials::new(key, secret, token, None, STATIC)))
        }
        (None, None) => Ok(None),
        _ => Err(Failure::configuration(
            "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set",
            "set both or neither",
        )),
    }
}

/// The token file and the role of IRSA.
fn of_web_identity(environment: &Environment) -> Result<Option<(&str, &str)>, Failure> {
    match (environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"), environment.get("AWS_ROLE_ARN")) {
        (Some(file), Some(role)) => Ok(Some((file, role))),
        (Some(_), None) => Err(Failure::configuration(
            "AWS_WEB_IDENTITY_TOKEN_FILE is set without AWS_ROLE_ARN",
            "set both or neither",
        )),
        (None, _) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::dns::Dns;
    use crate::locality::aws::http::Patience;
    use admin::Variables;
    use std::sync::Arc;

    #[test]
    fn they_are_renewed_before_they_expire() {
        let now = SystemTime::now();
        let seconds = Duration::from_secs;
        assert_eq!(use_for(None, now), LOOK);
        assert_eq!(use_for(Some(now + seconds(3_600)), now), seconds(3_300));
        assert_eq!(use_for(Some(now + seconds(60)), now), PAUSE);
        assert_eq!(use_for(Some(now - seconds(60)), now), PAUSE);
    }

    fn environment(variables: &[(&'static str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| (*name, (*value).to_owned())))
    }

    #[test]
    fn a_token_without_a_role_is_a_mistake() {
        let (file, role) = (("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"), ("AWS_ROLE_ARN", "arn:x"));
        assert_eq!(of_web_identity(&environment(&[file, role])).unwrap(), Some(("/token", "arn:x")));
        assert_eq!(of_web_identity(&environment(&[role])).unwrap(), None);
        let error = of_web_identity(&environment(&[file])).unwrap_err().to_string();
        assert!(error.contains("AWS_ROLE_ARN; set both"), "{error}");
    }

    #[test]
    fn those_that_cannot_be_renewed_serve_until_they_expire() {
        let dns = Dns::new(Arc::new(Config::new(Variables::default())), None);
        let client = Client::new(&dns, None, Patience::default(), Arc::default());
        // Half a key, so that none are found.
        let environment = Environment::new([("AWS_ACCESS_KEY_ID", "AKID".to_owned())]);
        let now = SystemTime::now();
        for (expiry, serve) in [(Some(now + LOOK), true), (Some(now), false), (None, false)] {
            let old = Credentials::new("OLD", "hush", None, expiry, "test");
            let mut cache = Cache { kept: Some((old, Instant::now())) };
            let mut finder = Finder {
                client: &client,
                environment: &environment,
                metadata: &mut Metadata::default(),
                region: "eu-north-1",
                until: Instant::now(),
            };
            let got = cache.get(&mut finder).map(|credentials| credentials.access_key_id().to_owned());
            assert_eq!(got.ok(), serve.then(|| "OLD".to_owned()), "{expiry:?}");
            let next = cache.kept.map(|(_, until)| until);
            assert_eq!(next.is_some_and(|next| next > Instant::now()), serve, "not for each question");
        }
    }

    #[test]
    fn half_a_key_is_a_mistake() {
        let (key, secret) = (("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "hush"));
        assert!(of_variables(&environment(&[])).unwrap().is_none());
        for half in [key, secret] {
            let error = of_variables(&environment(&[half])).unwrap_err().to_string();
            assert!(error.contains("set both") && !error.contains("hush"), "{error}");
        }
        let found = of_variables(&environment(&[key, secret])).unwrap().unwrap();
        assert_eq!((found.access_key_id(), found.secret_access_key()), ("AKID", "hush"));
        assert!(!format!("{found:?}").contains("hush"));
    }
}
