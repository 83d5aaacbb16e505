//! The instance metadata service of EC2, by IMDSv2 alone: a token first, then what is asked with it.

use super::environment::Environment;
use super::failure::{Failure, of_answer};
use super::http::{Call, Client, Reply};
use super::sign::is_whole;
use crate::locality::provider::Category;
use std::time::{Duration, Instant};

const WHO: &str = "the instance metadata service";
/// How long a token is asked to hold, in seconds, and when another is asked for.
const TOKEN_TTL: &str = "21600";
const TOKEN_USE: Duration = Duration::from_secs(21_000);
/// A service that is not there is not asked again at once, for another purpose.
const PAUSE: Duration = Duration::from_secs(4);

const UNREACHABLE: &str = "on EC2, in a container, set the instance's HttpPutResponseHopLimit to 2 or more \
                           (aws ec2 modify-instance-metadata-options), and see that HttpEndpoint is enabled; \
                           elsewhere, see docs/locality.md";

/// The service, and the token.
#[derive(Default)]
pub struct Metadata {
    token: Option<(String, Instant)>,
    absent: Option<(Failure, Instant)>,
}

impl Metadata {
    /// Asks for a path below the root; `None` where there is no such thing.
    pub fn get(
        &mut self,
        client: &Client,
        environment: &Environment,
        path: &str,
        until: Instant,
    ) -> Result<Option<String>, Failure> {
        if environment.is_true("AWS_EC2_METADATA_DISABLED") {
            return Err(Failure::configuration(
                format!("{WHO} is not asked, since AWS_EC2_METADATA_DISABLED is true"),
                "unset it, or tell what it would have told otherwise (docs/locality.md)",
            ));
        }
        let root = environment.instance_metadata();
        if !is_whole(root) {
            return Err(Failure::configuration(
                format!("the URL of {WHO} cannot be used"),
                "AWS_EC2_METADATA_SERVICE_ENDPOINT needs http:// and a host",
            ));
        }
        for fresh in [false, true] {
            if fresh {
                self.token = None;
            }
            let token = self.token(client, root, until)?;
            let headers = [("x-aws-ec2-metadata-token", token.as_str())];
            let reply = ask(client, "GET", &format!("{root}{path}"), &headers, until)
                .map_err(|failure| failure.advising(UNREACHABLE))?;
            match reply.status {
                200 => return Ok(Some(reply.body)),
                404 => return Ok(None),
                // The token holds no more.
                401 if !fresh => {}
                status => return Err(of_answer(WHO, status, None).advising(UNREACHABLE)),
            }
        }
        Err(Failure::new(Category::AccessDenied, format!("{WHO} refuses the token it has just given")))
    }
    fn token(&mut self, client: &Client, root: &str, until: Instant) -> Result<String, Failure> {
        let now = Instant::now();
        if let Some((token, _)) = self.token.as_ref().filter(|(_, until)| *until > now) {
            return Ok(token.clone());
        }
        if let Some((failure, _)) = self.absent.as_ref().filter(|(_, until)| *until > now) {
            return Err(failure.clone());
        }
        match fetch_token(client, root, until) {
            Ok(token) => {
                self.absent = None;
                self.token = Some((token.clone(), now + TOKEN_USE));
                Ok(token)
            }
            Err(failure) => {
                self.absent = Some((failure.clone(), Instant::now() + PAUSE));
                Err(failure)
            }
        }
    }
}

fn fetch_token(client: &Client, root: &str, until: Instant) -> Result<String, Failure> {
    let headers = [("x-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL)];
    let reply = ask(client, "PUT", &format!("{root}/latest/api/token"), &headers, until)
        .map_err(|failure| failure.advising(UNREACHABLE))?;
    match reply.status {
        200 if is_token(&reply.body) => Ok(reply.body),
        200 => Err(Failure::invalid(WHO, "it is no token")),
        status => {
            let what = format!("{WHO} gives no token (status {status})");
            let category = of_answer(WHO, status, None).category;
            Err(Failure::new(category, what).advising(UNREACHABLE))
        }
    }
}

/// What can stand in a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4096 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn ask(
    client: &Client,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    until: Instant,
) -> Result<Reply, Failure> {
    client.ask_near(&Call { who: WHO, method, url, headers, body: "", until })
}
