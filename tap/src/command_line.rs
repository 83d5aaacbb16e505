//! Where the daemon under test is: the TAP_ environment variables and their defaults.

use crate::connection::{Connection, Credentials, Endpoint, Error};
use std::str::FromStr;

/// An environment variable whose value cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{variable}={value:?} is not a port number (1-65535)")]
pub struct InvalidPort {
    variable: &'static str,
    value: String,
}

/// Addresses and accounts of the daemon under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// TAP_HOST and TAP_PORT: the traffic port
    pub traffic: Endpoint,
    /// TAP_USERNAME and TAP_PASSWORD: the account of clients, of the monitor and of the simulator
    pub client: Credentials,
    /// TAP_ADMINHOST and TAP_ADMINPORT
    pub admin: Endpoint,
    /// TAP_ADMINUSERNAME and TAP_ADMINPASSWORD
    pub administrator: Credentials,
    /// TAP_HOST and TAP_SIMPORT. The port is also the one of every server in a scenario.
    pub simulator: Endpoint,
}

impl CommandLine {
    /// Reads the process environment.
    pub fn from_environment() -> Result<Self, InvalidPort> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidPort> {
        let text = |name: &str, default: &str| lookup(name).unwrap_or_else(|| default.to_owned());
        let port = |variable: &'static str, default: u16| match lookup(variable) {
            None => Ok(default),
            Some(value) => match u16::from_str(&value) {
                Ok(port) if port != 0 => Ok(port),
                _ => Err(InvalidPort { variable, value }),
            },
        };
        let host = text("TAP_HOST", "127.0.0.1");
        Ok(Self {
            traffic: Endpoint::new(host.clone(), port("TAP_PORT", 6033)?),
            client: Credentials {
                username: text("TAP_USERNAME", "testuser"),
                password: text("TAP_PASSWORD", "testuser"),
            },
            admin: Endpoint::new(text("TAP_ADMINHOST", "127.0.0.1"), port("TAP_ADMINPORT", 6032)?),
            administrator: Credentials {
                username: text("TAP_ADMINUSERNAME", "admin"),
                password: text("TAP_ADMINPASSWORD", "admin"),
            },
            simulator: Endpoint::new(host, port("TAP_SIMPORT", 3306)?),
        })
    }

    /// The variables that make [`Self::from_environment`] of a child process return the same.
    pub fn to_environment(&self) -> [(&'static str, String); 9] {
        [
            ("TAP_HOST", self.traffic.host.clone()),
            ("TAP_PORT", self.traffic.port.to_string()),
            ("TAP_USERNAME", self.client.username.clone()),
            ("TAP_PASSWORD", self.client.password.clone()),
            ("TAP_ADMINHOST", self.admin.host.clone()),
            ("TAP_ADMINPORT", self.admin.port.to_string()),
            ("TAP_ADMINUSERNAME", self.administrator.username.clone()),
            ("TAP_ADMINPASSWORD", self.administrator.password.clone()),
            ("TAP_SIMPORT", self.simulator.port.to_string()),
        ]
    }

    /// A connection to the admin port.
    pub fn connect_admin(&self) -> Result<Connection, Error> {
        Connection::open(self.admin.clone(), &self.administrator, false)
    }

    /// A client connection through the traffic port.
    pub fn connect_traffic(&self) -> Result<Connection, Error> {
        Connection::open(self.traffic.clone(), &self.client, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<CommandLine, InvalidPort> {
        CommandLine::from_lookup(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let cl = from(&[]).unwrap();
        assert_eq!(cl.traffic.to_string(), "127.0.0.1:6033");
        assert_eq!(cl.admin.to_string(), "127.0.0.1:6032");
        assert_eq!(cl.simulator.to_string(), "127.0.0.1:3306");
        assert_eq!((cl.client.username.as_str(), cl.client.password.as_str()), ("testuser", "testuser"));
        assert_eq!(
            (cl.administrator.username.as_str(), cl.administrator.password.as_str()),
            ("admin", "admin")
        );
    }

    #[test]
    fn the_simulator_is_on_the_traffic_host() {
        let cl = from(&[("TAP_HOST", "127.0.0.9"), ("TAP_SIMPORT", "23306"), ("TAP_ADMINHOST", "127.0.0.8")])
            .unwrap();
        assert_eq!(cl.simulator.to_string(), "127.0.0.9:23306");
        assert_eq!(cl.admin.host, "127.0.0.8");
    }

    #[test]
    fn the_environment_of_a_child_says_the_same() {
        let cl = from(&[
            ("TAP_HOST", "127.0.0.9"),
            ("TAP_PORT", "1"),
            ("TAP_ADMINPORT", "2"),
            ("TAP_PASSWORD", "p"),
        ]);
        let cl = cl.unwrap();
        let environment = cl.to_environment();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(from(&environment).unwrap(), cl);
    }

    #[test]
    fn a_bad_port_names_variable_and_value() {
        for value in ["x", "", "0", "65536", "-1"] {
            let error = from(&[("TAP_ADMINPORT", value)]).unwrap_err();
            assert_eq!(error, InvalidPort { variable: "TAP_ADMINPORT", value: value.to_owned() });
        }
    }
}
