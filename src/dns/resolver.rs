//! DNS itself: the only file that knows the resolver library.

use super::{Lookup, LookupError, Resolved};
use crate::config::Config;
use admin::variables::ResolutionFamily;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trust_dns_resolver::config::{LookupIpStrategy, NameServerConfigGroup, ResolverConfig, ResolverOpts};
use trust_dns_resolver::error::{ResolveError, ResolveErrorKind};
use trust_dns_resolver::proto::op::ResponseCode;
use trust_dns_resolver::{Name, Resolver, system_conf};

/// Shortest time one query is given, however many a lookup may need.
const SHORTEST_QUERY: Duration = Duration::from_millis(50);
/// Queries that one server gets for one name and record type: the first and, where it fails, one more.
const TRIES: u32 = 2;

/// Asks name servers, by `mysql-resolution_family`.
pub struct DnsLookup {
    config: Arc<Config>,
    /// `None`: the system's servers, as /etc/resolv.conf names them at the time.
    server: Option<SocketAddr>,
}

impl DnsLookup {
    /// A lookup at one server, or with the system's.
    pub fn new(config: Arc<Config>, server: Option<SocketAddr>) -> Self {
        Self { config, server }
    }

    fn settings(&self) -> Result<(ResolverConfig, ResolverOpts), ResolveError> {
        match self.server {
            Some(server) => {
                let servers = NameServerConfigGroup::from_ips_clear(&[server.ip()], server.port(), true);
                Ok((ResolverConfig::from_parts(None, vec![], servers), ResolverOpts::default()))
            }
            None => system_conf::read_system_conf(),
        }
    }

    /// A resolver is made for each lookup: it costs far less than the query, its time limit can be the caller's, a change of
    /// /etc/resolv.conf is seen, and no lookup waits for another, as they would within one resolver.
    fn ask(&self, name: &str, deadline: Instant) -> Result<Resolved, ResolveError> {
        let (config, mut options) = self.settings()?;
        let mut query = Name::from_ascii(name)?;
        if config.search().is_empty() && config.domain().is_none() {
            query.set_fqdn(true);
        }
        let strategy = strategy(self.config.variables().resolution_family);
        let families = if strategy == LookupIpStrategy::Ipv4thenIpv6 { 2 } else { 1 };
        let names = u32::try_from(config.search().len() + 2).unwrap_or(u32::MAX);
        let names = if query.is_fqdn() { 1 } else { names };
        let left = deadline.saturating_duration_since(Instant::now());
        options.timeout = (left / names.saturating_mul(families * TRIES)).max(SHORTEST_QUERY);
        options.attempts = usize::try_from(TRIES - 1).unwrap_or(0);
        options.cache_size = 0;
        options.use_hosts_file = false;
        options.ip_strategy = strategy;
        options.num_concurrent_reqs = config.name_servers().len();
        let answer = Resolver::new(config, options)?.lookup_ip(query)?;
        let ttl = answer.valid_until().saturating_duration_since(Instant::now());
        Ok(Resolved { addresses: answer.iter().collect(), ttl: Some(ttl) })
    }
}

impl Lookup for DnsLookup {
    fn lookup(&self, name: &str, deadline: Instant) -> Result<Resolved, LookupError> {
        match self.ask(name, deadline) {
            Ok(resolved) if !resolved.addresses.is_empty() => Ok(resolved),
            Ok(_) => Err(LookupError::NotFound(name.to_owned())),
            Err(error) => Err(classify(name, &error)),
        }
    }
}

/// Addresses of a list that `mysql-resolution_family` allows. With `system` that is IPv4 where there is any, since taking turns
/// between the families would fail half the time on hosts that have one of them.
pub fn allowed(mut addresses: Vec<IpAddr>, family: ResolutionFamily) -> Vec<IpAddr> {
    let ipv4 = match family {
        ResolutionFamily::Ipv4 => true,
        ResolutionFamily::Ipv6 => false,
        ResolutionFamily::System => addresses.iter().any(IpAddr::is_ipv4),
    };
    addresses.retain(|address| address.is_ipv4() == ipv4);
    addresses
}

fn strategy(family: ResolutionFamily) -> LookupIpStrategy {
    match family {
        ResolutionFamily::System => LookupIpStrategy::Ipv4thenIpv6,
        ResolutionFamily::Ipv4 => LookupIpStrategy::Ipv4Only,
        ResolutionFamily::Ipv6 => LookupIpStrategy::Ipv6Only,
    }
}

fn classify(name: &str, error: &ResolveError) -> LookupError {
    let reason = match error.kind() {
        ResolveErrorKind::NoRecordsFound { response_code, .. } => match response_code {
            ResponseCode::NXDomain | ResponseCode::NoError => return LookupError::NotFound(name.to_owned()),
            other => format!("the name server answered {other}"),
        },
        _ => error.to_string(),
    };
    LookupError::Failed { name: name.to_owned(), reason }
}
