//! Addresses of clients whose logins failed, and those of them that are refused for it.
//!
//! A login that succeeds clears its address. What has failed otherwise than by a wrong password or by nonsense says nothing
//! of a client: health checks of load balancers connect and leave.

use admin::{Value, Variables};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::{SqlError, WireError};

#[derive(Debug, Clone, Copy)]
struct Host {
    errors: u64,
    /// Microseconds since 1970.
    last_updated: u64,
}

/// The addresses.
#[derive(Default)]
pub struct Hosts(Mutex<HashMap<IpAddr, Host>>);

impl Hosts {
    /// The error that a client from there gets in place of the greeting, if its address has failed too often.
    pub fn refusal(&self, client: IpAddr, limits: &Variables) -> Option<SqlError> {
        let most = limits.client_host_error_counts as u64;
        if limits.client_host_cache_size == 0 || most == 0 {
            return None;
        }
        let blocked = self.0.lock().get(&client).is_some_and(|host| host.errors >= most);
        let text = format!(
            "Host '{client}' is blocked because of many connection errors; unblock with 'PROXYSQL FLUSH MYSQL CLIENT HOSTS'"
        );
        blocked.then(|| SqlError::new(1129, "HY000", text))
    }
    /// A client from there has not logged in. Of too many addresses the one that failed longest ago is forgotten.
    pub fn failed(&self, client: IpAddr, error: &WireError, limits: &Variables) {
        let counts = match error {
            WireError::Sql(error) => error.code == 1045,
            WireError::Malformed(_) => true,
            _ => false,
        };
        if !counts || limits.client_host_cache_size == 0 {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        let last_updated = u64::try_from(now).unwrap_or(u64::MAX);
        let mut hosts = self.0.lock();
        if let Some(host) = hosts.get_mut(&client) {
            host.errors += 1;
            host.last_updated = last_updated;
            return;
        }
        while hosts.len() >= limits.client_host_cache_size {
            let oldest = hosts.iter().min_by_key(|(_, host)| host.last_updated).map(|(client, _)| *client);
            let Some(oldest) = oldest else { break };
            hosts.remove(&oldest);
        }
        hosts.insert(client, Host { errors: 1, last_updated });
    }
    /// A client from there has logged in.
    pub fn succeeded(&self, client: IpAddr, limits: &Variables) {
        if limits.client_host_cache_size > 0 {
            self.0.lock().remove(&client);
        }
    }
    /// Forgets all of them.
    pub fn flush(&self) {
        self.0.lock().clear();
    }
    /// Rows of stats_mysql_client_host_cache.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let hosts = self.0.lock().clone();
        rows(hosts)
    }
    /// The same, and all are forgotten.
    pub fn take_rows(&self) -> Vec<Vec<Value>> {
        let hosts = std::mem::take(&mut *self.0.lock());
        rows(hosts)
    }
}

fn rows(hosts: HashMap<IpAddr, Host>) -> Vec<Vec<Value>> {
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let row = |(client, host): (IpAddr, Host)| {
        vec![Value::Text(client.to_string()), number(host.errors), number(host.last_updated)]
    };
    hosts.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn limits(size: usize, errors: usize) -> Variables {
        Variables { client_host_cache_size: size, client_host_error_counts: errors, ..Variables::default() }
    }

    fn client(number: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, number).into()
    }

    fn denied() -> WireError {
        SqlError::new(1045, "28000", "Access denied").into()
    }

    #[test]
    fn an_address_is_refused_that_failed_too_often_until_it_is_flushed() {
        let (hosts, limits) = (Hosts::default(), limits(10, 2));
        hosts.failed(client(1), &denied(), &limits);
        assert_eq!(hosts.refusal(client(1), &limits), None);
        hosts.failed(client(1), &denied(), &limits);
        assert_eq!(hosts.refusal(client(1), &limits).unwrap().code, 1129);
        assert_eq!(hosts.refusal(client(2), &limits), None);
        assert_eq!(hosts.refusal(client(1), &self::limits(10, 0)), None, "only counted");
        assert_eq!(hosts.rows()[0][..2], [Value::Text("10.0.0.1".into()), Value::Int(2)]);
        hosts.flush();
        assert_eq!(hosts.refusal(client(1), &limits), None);
    }

    #[test]
    fn a_success_and_what_is_no_fault_of_the_client_do_not_count() {
        let (hosts, limits) = (Hosts::default(), limits(10, 1));
        hosts.failed(client(1), &WireError::Closed, &limits);
        hosts.failed(client(1), &SqlError::new(1226, "42000", "too many").into(), &limits);
        hosts.failed(client(1), &denied(), &self::limits(0, 1));
        assert!(hosts.rows().is_empty());
        hosts.failed(client(1), &denied(), &limits);
        hosts.succeeded(client(1), &limits);
        assert!(hosts.take_rows().is_empty());
    }

    #[test]
    fn of_too_many_the_oldest_goes() {
        let (hosts, limits) = (Hosts::default(), limits(2, 1));
        for number in 1..=3 {
            hosts.failed(client(number), &denied(), &limits);
            hosts.0.lock().get_mut(&client(number)).unwrap().last_updated = number.into();
        }
        assert_eq!(hosts.refusal(client(1), &limits), None);
        assert_eq!(hosts.take_rows().len(), 2);
        assert!(hosts.rows().is_empty());
    }
}
