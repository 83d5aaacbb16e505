//! HTTP: one request, one answer, by a deadline. Redirects are not followed.

use super::Shared;
use super::failure::Failure;
use crate::dns::Dns;
use crate::locality::provider::Category;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::request::Builder;
use ureq::http::{Request, Response, Uri};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, AsSendBody, Body, Error, Proxy, Timeout};

/// Largest answer that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// What a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(2);
const REACH: &str = "see that there is a way to it: a route, a VPC endpoint, or the proxy that HTTPS_PROXY names \
                     (docs/locality.md)";

/// What is sent.
pub struct Call<'a> {
    /// Who is asked, in words for a failure.
    pub who: &'a str,
    /// `GET`, `PUT` or `POST`.
    pub method: &'a str,
    /// Where.
    pub url: &'a str,
    /// Headers beside Host and the body's length.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a str,
    /// When the answer must be there in full, at the latest.
    pub until: Instant,
}

/// What came back.
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// How long is waited.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For an answer of an API of AWS's.
    pub api: Duration,
    /// For one of a metadata service.
    pub near: Duration,
    /// After the first "too often"; it doubles.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { api: Duration::from_secs(3), near: Duration::from_secs(2), pause: Duration::from_millis(250) }
    }
}

/// Sends requests. Names are looked up as those of servers are.
pub struct Client {
    /// For AWS's APIs: by the proxy that HTTPS_PROXY names, if any.
    outside: Agent,
    /// For what is on this machine or beside it: never by a proxy.
    near: Agent,
    /// How long it waits.
    pub patience: Patience,
    shared: Arc<Shared>,
}

impl Client {
    /// Opens no connection yet. `proxy` is on the way to AWS's APIs. Nothing is sent any more once the provider ends.
    pub fn new(dns: &Arc<Dns>, proxy: Option<Proxy>, patience: Patience, shared: Arc<Shared>) -> Self {
        Self { outside: agent(dns, proxy), near: agent(dns, None), patience, shared }
    }
    /// Asks an API of AWS's.
    pub fn ask(&self, call: &Call<'_>) -> Result<Reply, Failure> {
        self.send(&self.outside, call, self.patience.api).map_err(|failure| match failure.category {
            Category::Timeout | Category::ProviderError => failure.advising(REACH),
            _ => failure,
        })
    }
    /// Asks a metadata service.
    pub fn ask_near(&self, call: &Call<'_>) -> Result<Reply, Failure> {
        self.send(&self.near, call, self.patience.near)
    }
    fn send(&self, agent: &Agent, call: &Call<'_>, patience: Duration) -> Result<Reply, Failure> {
        match self.shared.is_stopping() {
            true => Err(Failure::late(call.who)),
            false => send(agent, call, patience),
        }
    }
}

fn agent(dns: &Arc<Dns>, proxy: Option<Proxy>) -> Agent {
    let tls = TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(RootCerts::PlatformVerifier);
    let config = Agent::config_builder()
        .tls_config(tls.build())
        .proxy(proxy)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("pointsman/", env!("CARGO_PKG_VERSION")))
        .max_idle_connections_per_host(1)
        .timeout_connect(Some(CONNECT))
        .build();
    Agent::with_parts(config, DefaultConnector::default(), Names(Arc::clone(dns)))
}

fn send(agent: &Agent, call: &Call<'_>, patience: Duration) -> Result<Reply, Failure> {
    let left = call.until.saturating_duration_since(Instant::now()).min(patience);
    if left.is_zero() {
        return Err(Failure::late(call.who));
    }
    let mut request = Request::builder().method(call.method).uri(call.url);
    for (name, value) in call.headers {
        request = request.header(*name, *value);
    }
    let sent = match call.method {
        "GET" => run(agent, request, (), left),
        _ => run(agent, request, call.body, left),
    };
    let mut reply = sent.map_err(|error| failure(call.who, &error))?;
    let status = reply.status().as_u16();
    let body = reply.body_mut().with_config().limit(LARGEST).read_to_vec();
    let body = body.map_err(|error| failure(call.who, &error))?;
    match String::from_utf8(body) {
        Ok(body) => Ok(Reply { status, body }),
        Err(_) => Err(Failure::invalid(call.who, "it is no UTF-8")),
    }
}

fn run(
    agent: &Agent,
    request: Builder,
    body: impl AsSendBody,
    patience: Duration,
) -> Result<Response<Body>, Error> {
    let request = agent.configure_request(request.body(body)?);
    agent.run(request.timeout_global(Some(patience)).build())
}

/// In own words, since the library's may hold parts of the request.
fn failure(who: &str, error: &Error) -> Failure {
    let failed = |category, why: &str| Failure::new(category, format!("asking {who} failed: {why}"));
    match error {
        Error::Timeout(Timeout::Resolve) => failed(Category::Timeout, "its name has no address in time"),
        Error::Timeout(Timeout::Connect) => failed(Category::Timeout, "no connection in time"),
        Error::Timeout(_) => failed(Category::Timeout, "no answer in time"),
        Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
            failed(Category::Timeout, "no answer in time")
        }
        Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Failure::invalid(who, "it ends too early")
        }
        Error::BodyExceedsLimit(_) => Failure::invalid(who, "it is larger than 16 MiB"),
        Error::LargeResponseHeader(..) => Failure::invalid(who, "its headers are too large"),
        Error::Protocol(_) | Error::BodyStalled => Failure::invalid(who, "it is no HTTP"),
        Error::Io(error) => failed(Category::ProviderError, &error.kind().to_string()),
        Error::HostNotFound => failed(Category::ProviderError, "its name has no address"),
        Error::ConnectionFailed => failed(Category::ProviderError, "no connection"),
        Error::NativeTls(error) => failed(Category::ProviderError, &format!("no TLS: {error}")),
        Error::Tls(why) => failed(Category::ProviderError, &format!("no TLS: {why}")),
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => {
            failed(Category::ProviderError, "the proxy that HTTPS_PROXY names does not connect to it")
        }
        Error::BadUri(_) | Error::Http(_) => {
            failed(Category::ProviderError, "its URL or a header cannot be used")
        }
        _ => failed(Category::ProviderError, "an error of the HTTP client's"),
    }
}

/// Addresses of names, by a deadline and without a thread for each, unlike the library's own.
struct Names(Arc<Dns>);

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        _: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let patience = if timeout.after.is_not_happening() { CONNECT } else { *timeout.after };
        let deadline = Instant::now() + patience;
        let address = self.0.resolve(host, deadline).map_err(|_| match Instant::now() >= deadline {
            true => Error::Timeout(timeout.reason),
            false => Error::HostNotFound,
        })?;
        let mut addresses = self.empty();
        addresses.push(SocketAddr::new(address, port));
        Ok(addresses)
    }
}
