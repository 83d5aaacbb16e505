//! Credentials of a container: of its ECS task, or by EKS Pod Identity.

use super::{Finder, answer};
use crate::locality::aws::environment::Environment;
use crate::locality::aws::failure::{Failure, of_answer};
use crate::locality::aws::file;
use crate::locality::aws::http::Call;
use aws_credential_types::Credentials;
use std::net::IpAddr;
use std::path::Path;
use ureq::http::Uri;

const WHO: &str = "the container credentials endpoint";
/// Where ECS has it.
const ECS: &str = "http://169.254.170.2";
/// The addresses beside loopback that are trusted without TLS: of ECS, and of EKS.
const LINK_LOCAL: &[&str] = &["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Whether there is such an endpoint.
pub fn is_configured(environment: &Environment) -> bool {
    url(environment).is_some()
}

fn url(environment: &Environment) -> Option<String> {
    let relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let relative = relative.map(|path| format!("{ECS}/{}", path.trim_start_matches('/')));
    relative.or_else(|| environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI").map(str::to_owned))
}

/// Asks it.
pub fn find(finder: &Finder<'_>) -> Result<Credentials, Failure> {
    let absent = || Failure::configuration("no container credentials are configured", "see docs/locality.md");
    let url = url(finder.environment).ok_or_else(absent)?;
    if !is_trusted(&url) {
        return Err(Failure::configuration(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of an address that is trusted without it",
            "those are loopback, 169.254.170.2, 169.254.170.23 and fd00:ec2::23",
        ));
    }
    let authorization = authorization(finder.environment)?;
    let headers = authorization.as_deref().map(|token| ("authorization", token));
    let headers = Vec::from_iter(headers);
    let until = finder.until;
    let call = Call { who: WHO, method: "GET", url: &url, headers: &headers, body: "", until };
    let reply = finder.client.ask_near(&call)?;
    match reply.status {
        200 => answer::read_json(WHO, &reply.body),
        status => {
            Err(of_answer(WHO, status, None).advising("give the task or the pod a role (docs/locality.md)"))
        }
    }
}

/// Whether the token may be sent there.
fn is_trusted(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let Some(host) = uri.host() else { return false };
    match uri.scheme_str() {
        Some("https") => true,
        Some("http") => match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || LINK_LOCAL.contains(&address.to_string().as_str()),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        },
        _ => false,
    }
}

/// The token; the one in a file counts, and is read anew each time.
fn authorization(environment: &Environment) -> Result<Option<String>, Failure> {
    let token = match environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => {
            let token = file::read(Path::new(path)).map_err(|error| {
                let what = format!("the container authorization token {path} cannot be read: {error}");
                Failure::configuration(what, "see AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
            })?;
            Some(token.trim().to_owned())
        }
        None => environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned),
    };
    match token {
        Some(token) if token.chars().any(char::is_control) => Err(Failure::configuration(
            "the container authorization token has more than one line",
            "see AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        )),
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_trusted_places_only() {
        for url in [
            "http://127.0.0.1:1/x",
            "http://127.9.9.9/x",
            "http://[::1]/x",
            "http://localhost:1/x",
            "http://169.254.170.2/x",
            "http://169.254.170.23/v1/credentials",
            "http://[fd00:ec2::23]/v1/credentials",
            "https://credentials.example.com/x",
        ] {
            assert!(is_trusted(url), "{url}");
        }
        for url in [
            "",
            "x",
            "/x",
            "ftp://127.0.0.1/x",
            "http://169.254.169.254/x",
            "http://10.0.0.1/x",
            "http://example.com/x",
            "http://localhost.example.com/x",
            "http://127.0.0.1@example.com/x",
            "http://[fd00:ec2::254]/x",
        ] {
            assert!(!is_trusted(url), "{url}");
        }
    }

    #[test]
    fn the_relative_path_is_below_the_address_of_ecs() {
        let environment = |name, value: &str| Environment::new([(name, value.to_owned())]);
        let relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1");
        assert_eq!(url(&relative).as_deref(), Some("http://169.254.170.2/v2/credentials/1"));
        let full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x");
        assert_eq!(url(&full).as_deref(), Some("http://127.0.0.1/x"));
        assert!(!is_configured(&Environment::default()));
    }

    #[test]
    fn a_token_has_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let environment = Environment::new([
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path.to_str().unwrap().to_owned()),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "other".to_owned()),
        ]);
        assert!(authorization(&environment).is_err());
        std::fs::write(&path, "hush\n").unwrap();
        assert_eq!(authorization(&environment).unwrap().as_deref(), Some("hush"));
        std::fs::write(&path, "hush\r\nX: y").unwrap();
        let error = authorization(&environment).unwrap_err().to_string();
        assert!(!error.contains("hush"), "{error}");
    }
}
