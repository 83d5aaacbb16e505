//! Roles, by the Security Token Service.

use super::{Finder, answer};
use crate::locality::aws::failure::{Failure, GRANT};
use crate::locality::aws::file;
use crate::locality::aws::sign::Api;
use aws_credential_types::Credentials;
use std::path::Path;

/// What sessions are called where nothing names them.
const SESSION: &str = "pointsman";
const REFUSED: &str =
    "allow the role to be assumed: by its trust policy, and by sts:AssumeRole of who assumes it";

/// What is asked for.
pub struct Role<'a> {
    /// Its ARN.
    pub arn: &'a str,
    /// The session's name.
    pub session: &'a str,
    /// What its trust policy may ask for.
    pub external_id: Option<&'a str>,
    /// Seconds, if not an hour.
    pub duration: Option<&'a str>,
}

impl<'a> Role<'a> {
    /// Without what is seldom there.
    pub fn new(arn: &'a str, session: Option<&'a str>) -> Self {
        Self { arn, session: session.unwrap_or(SESSION), external_id: None, duration: None }
    }
}

/// By the token that is in a file, which is read anew each time: Kubernetes changes it.
pub fn with_web_identity(finder: &Finder<'_>, role: &Role<'_>, file: &Path) -> Result<Credentials, Failure> {
    let token = file::read(file).map_err(|error| {
        let what = format!("the web identity token {} cannot be read: {error}", file.display());
        Failure::configuration(what, "see AWS_WEB_IDENTITY_TOKEN_FILE")
    })?;
    ask(finder, None, "AssumeRoleWithWebIdentity", role, Some(("WebIdentityToken", token.trim())))
}

/// As somebody else.
pub fn with_credentials(
    finder: &Finder<'_>,
    role: &Role<'_>,
    source: &Credentials,
) -> Result<Credentials, Failure> {
    let external_id = role.external_id.map(|id| ("ExternalId", id));
    ask(finder, Some(source), "AssumeRole", role, external_id)
}

fn ask(
    finder: &Finder<'_>,
    signer: Option<&Credentials>,
    action: &str,
    role: &Role<'_>,
    more: Option<(&str, &str)>,
) -> Result<Credentials, Failure> {
    let environment = finder.environment;
    let api = Api {
        service: "sts",
        version: "2011-06-15",
        region: environment.region().unwrap_or(finder.region),
        endpoint: environment.endpoint("AWS_ENDPOINT_URL_STS"),
    };
    let mut parameters = vec![("Action", action), ("RoleArn", role.arn), ("RoleSessionName", role.session)];
    parameters.extend(role.duration.map(|seconds| ("DurationSeconds", seconds)));
    parameters.extend(more);
    let answer = api.ask(finder.client, signer, &parameters, finder.until).map_err(|failure| {
        let remedy = if failure.remedy == GRANT { REFUSED } else { failure.remedy };
        Failure { remedy, ..failure }
    })?;
    answer::read_xml(&api.who(), &answer)
}
