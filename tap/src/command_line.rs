//! Where the daemon under test is: the TAP_ variables of the environment and of .env files, and their defaults.

use crate::connection::{Connection, Credentials, Endpoint, Error};
use crate::env_files::{self, EnvFileError};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

/// Why it is not known where the daemon is.
#[derive(Debug, thiserror::Error)]
pub enum CommandLineError {
    /// A variable's value cannot be used
    #[error("{variable}={value:?} is not {expected}")]
    Invalid {
        /// Its name
        variable: &'static str,
        /// What was found
        value: String,
        /// What can be used
        expected: &'static str,
    },
    /// A .env file cannot be used
    #[error(transparent)]
    File(#[from] EnvFileError),
    /// Where the program is, and with it its .env files, is not known
    #[error("looking for the program's own directory: {0}")]
    Program(io::Error),
}

/// Addresses and accounts of the daemon under test, by the contract's environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// TAP_HOST and TAP_PORT: the traffic port; 127.0.0.1:6033 unless set
    pub traffic: Endpoint,
    /// TAP_USERNAME and TAP_PASSWORD: the account of clients, of the monitor and of the simulator; testuser/testuser
    pub client: Credentials,
    /// TAP_ADMINHOST and TAP_ADMINPORT: the admin port; 127.0.0.1:6032
    pub admin: Endpoint,
    /// TAP_ADMINUSERNAME and TAP_ADMINPASSWORD: the administrator's account; admin/admin
    pub administrator: Credentials,
    /// TAP_HOST and TAP_SIMPORT: the simulator's control connection. The port, 3306, is also the one of every server in a
    /// scenario. TAP_SIMPORT is pointsman's own variable, for runs where 3306 is not free.
    pub simulator: Endpoint,
    /// TAP_WORKDIR: where a scenario finds and leaves files; the working directory. The runner names the run's directory.
    pub workdir: PathBuf,
    /// TAP_CLIENT_FLAGS: capability flags that clients of the traffic port ask for besides the usual ones, as a decimal number; 0
    pub client_flags: u32,
}

impl CommandLine {
    /// A daemon at these addresses, everything else being as by default.
    pub fn at(traffic: Endpoint, admin: Endpoint, simulator: Endpoint) -> Self {
        let account = |name: &str| Credentials { username: name.to_owned(), password: name.to_owned() };
        Self {
            traffic,
            client: account("testuser"),
            admin,
            administrator: account("admin"),
            simulator,
            workdir: "./".into(),
            client_flags: 0,
        }
    }

    /// Reads the environment and the .env files beside the program ([`env_files::beside`]). The environment goes before them.
    /// `note` hears which files were read, unless TAP_QUIET_ENVLOAD is set.
    pub fn from_environment(note: impl FnMut(&str)) -> Result<Self, CommandLineError> {
        let program = std::env::current_exe().map_err(CommandLineError::Program)?;
        let files = env_files::beside(&program)?;
        let lookup = |name: &str| std::env::var_os(name).map(text_of).or_else(|| files.get(name));
        if lookup("TAP_QUIET_ENVLOAD").is_none() {
            files.describe().iter().map(String::as_str).for_each(note);
        }
        Self::from_lookup(lookup)
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, CommandLineError> {
        let text = |name: &str, default: &str| lookup(name).unwrap_or_else(|| default.to_owned());
        let port = |variable, default: u16| {
            number(variable, lookup(variable), default, "a port number (1-65535)", |port| *port != 0)
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
            workdir: text("TAP_WORKDIR", "./").into(),
            client_flags: number(
                "TAP_CLIENT_FLAGS",
                lookup("TAP_CLIENT_FLAGS"),
                0,
                "a number (0-4294967295)",
                |_| true,
            )?,
        })
    }

    /// The variables that make [`Self::from_environment`] of a child process return the same.
    pub fn to_environment(&self) -> [(&'static str, String); 11] {
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
            ("TAP_WORKDIR", self.workdir.display().to_string()),
            ("TAP_CLIENT_FLAGS", self.client_flags.to_string()),
        ]
    }

    /// A connection to the admin port.
    pub fn connect_admin(&self) -> Result<Connection, Error> {
        Connection::open(self.admin.clone(), &self.administrator, false)
    }

    /// A client connection through the traffic port.
    pub fn connect_traffic(&self) -> Result<Connection, Error> {
        Connection::open_with_flags(self.traffic.clone(), &self.client, false, self.client_flags)
    }
}

/// A variable that is no UTF-8 is as wrong as it looks, and not one that is missing.
fn text_of(value: OsString) -> String {
    value.to_string_lossy().into_owned()
}

fn number<N: FromStr>(
    variable: &'static str,
    value: Option<String>,
    default: N,
    expected: &'static str,
    fits: impl FnOnce(&N) -> bool,
) -> Result<N, CommandLineError> {
    let Some(value) = value else { return Ok(default) };
    match value.parse() {
        Ok(number) if fits(&number) => Ok(number),
        _ => Err(CommandLineError::Invalid { variable, value, expected }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<CommandLine, CommandLineError> {
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
        assert_eq!((cl.workdir.to_str(), cl.client_flags), (Some("./"), 0));
        let at = CommandLine::at(cl.traffic.clone(), cl.admin.clone(), cl.simulator.clone());
        assert_eq!(at, cl);
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
            ("TAP_WORKDIR", "/w"),
            ("TAP_CLIENT_FLAGS", "32"),
        ]);
        let cl = cl.unwrap();
        let environment = cl.to_environment();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(from(&environment).unwrap(), cl);
    }

    #[test]
    fn a_bad_port_names_variable_and_value() {
        for value in ["x", "", "0", "65536", "-1"] {
            let error = from(&[("TAP_ADMINPORT", value)]).unwrap_err().to_string();
            assert_eq!(error, format!("TAP_ADMINPORT={value:?} is not a port number (1-65535)"));
        }
        let error = from(&[("TAP_CLIENT_FLAGS", "-1")]).unwrap_err().to_string();
        assert_eq!(error, "TAP_CLIENT_FLAGS=\"-1\" is not a number (0-4294967295)");
    }
}
