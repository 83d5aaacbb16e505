//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Run the daemon.
    Run(Options),
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
}

/// `--locality-provider`: who tells where servers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalityProvider {
    /// `aws`
    Aws,
    /// `file:PATH`
    File(PathBuf),
    /// `library:PATH`
    Library {
        /// The shared object.
        path: PathBuf,
        /// `--locality-config`
        config: String,
    },
}

impl fmt::Display for LocalityProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aws => f.write_str("aws"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            // The library's configuration may be private.
            Self::Library { path, .. } => write!(f, "library:{}", path.display()),
        }
    }
}

/// How to run the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directory of the database, the certificates and the `ports` file. Without it the configuration file says, or
    /// [`DATADIR`] is it.
    pub datadir: Option<PathBuf>,
    /// The configuration file; without it [`crate::places`] looks in its places.
    pub config: Option<PathBuf>,
    /// Put the database aside and start from the configuration file.
    pub initial: bool,
    /// Merge the configuration file into the database.
    pub reload: bool,
    /// Serve SQLite over MySQL on `sqliteserver-mysql_ifaces`.
    pub sqlite3_server: bool,
    /// Run the monitor and the blue/green workers.
    pub monitor: bool,
    /// Names to addresses that go before /etc/hosts, in that file's format.
    pub hosts_file: Option<PathBuf>,
    /// Who tells where servers are.
    pub locality_provider: Option<LocalityProvider>,
    /// `--set`: variables for this start.
    pub overrides: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            datadir: None,
            config: None,
            initial: false,
            reload: false,
            sqlite3_server: false,
            monitor: true,
            hosts_file: None,
            locality_provider: None,
            overrides: Vec::new(),
        }
    }
}

/// The data directory where nothing says another.
pub const DATADIR: &str = "/var/lib/pointsman";

/// The help text.
pub const HELP: &str = "\
pointsman - a MySQL proxy that carries traffic through Amazon RDS blue/green switchovers

Usage: pointsman [OPTIONS]

Options:
  -D, --datadir DIR        where the database, certificates and the `ports` file live
                           [default: the configuration file's datadir, or /var/lib/pointsman]
  -c, --config FILE        the configuration file, read where there is no database yet
                           [default: DATADIR/pointsman.cnf or /etc/pointsman.cnf, if there]
      --initial            put the database aside and start from the configuration file
      --reload             merge the configuration file into the database
  -f, --foreground         accepted; pointsman always runs in the foreground
  -e, --exit-on-error      accepted; pointsman never restarts itself
      --idle-threads, --no-version-check
                           accepted; they change nothing here
  -M, --no-monitor         run neither server checks nor blue/green workers
      --sqlite3-server     serve SQLite over the MySQL protocol (a database to try things on)
      --hosts-file FILE    names that go before /etc/hosts, in the same format
      --locality-provider aws | file:PATH | library:PATH
                           who tells in which Availability Zone servers are: AWS, a map file (docs/locality.md)
                           or a shared object (docs/locality-provider.md)
      --locality-config TEXT
                           what the shared object is told at its start; no place for passwords
      --set NAME=VALUE     a variable for this start, as often as needed
  -V, --version            print the version
  -h, --help               print this text

Examples:
  pointsman -D ./data --sqlite3-server
  pointsman -D ./data --set mysql-interfaces=127.0.0.1:26033 --set admin-mysql_ifaces=127.0.0.1:26032
  mysql -h 127.0.0.1 -P 6032 -u admin -padmin      # the admin interface

Signals: SIGTERM and SIGINT stop the daemon; running statements get up to 5 seconds.
The level of the log is set by RUST_LOG (error, warn, info, debug) [default: info].
";

/// Reads the arguments after the program's name. An error is one line for a person.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Invocation, String> {
    use lexopt::prelude::*;
    let mut options = Options::default();
    let mut locality_config = None;
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(explain)? {
        match argument {
            Short('D') | Long("datadir") => {
                options.datadir = Some(PathBuf::from(parser.value().map_err(explain)?));
            }
            Short('c') | Long("config") => {
                options.config = Some(PathBuf::from(parser.value().map_err(explain)?));
            }
            Long("initial") => options.initial = true,
            Long("reload") => options.reload = true,
            Short('f') | Long("foreground") | Short('e') | Long("exit-on-error") => {}
            Long("idle-threads" | "no-version-check") => {}
            Short('M') | Long("no-monitor") => options.monitor = false,
            Long("sqlite3-server") => options.sqlite3_server = true,
            Long("hosts-file") => options.hosts_file = Some(PathBuf::from(parser.value().map_err(explain)?)),
            Long("locality-provider") => {
                let text = parser.value().and_then(|value| value.string()).map_err(explain)?;
                options.locality_provider = Some(parse_provider(&text)?);
            }
            Long("locality-config") => {
                locality_config = Some(parser.value().and_then(|value| value.string()).map_err(explain)?);
            }
            Long("set") => {
                let text = parser.value().and_then(|value| value.string()).map_err(explain)?;
                options.overrides.push(parse_override(&text)?);
            }
            Short('V') | Long("version") => return Ok(Invocation::Version),
            Short('h') | Long("help") => return Ok(Invocation::Help),
            other => return Err(explain(other.unexpected())),
        }
    }
    if options.initial && options.reload {
        return Err("--initial and --reload exclude each other; `pointsman --help` says what they do".into());
    }
    match (&mut options.locality_provider, locality_config) {
        (Some(LocalityProvider::Library { config, .. }), Some(text)) => *config = text,
        (_, Some(_)) => {
            return Err(
                "--locality-config is for --locality-provider library:PATH; see `pointsman --help`".into()
            );
        }
        (_, None) => {}
    }
    Ok(Invocation::Run(options))
}

fn explain(error: lexopt::Error) -> String {
    format!("{error}; `pointsman --help` lists the options")
}

fn parse_provider(text: &str) -> Result<LocalityProvider, String> {
    if text == "aws" {
        return Ok(LocalityProvider::Aws);
    }
    match text.split_once(':') {
        Some(("file", path)) if !path.is_empty() => Ok(LocalityProvider::File(path.into())),
        Some(("library", path)) if !path.is_empty() => {
            Ok(LocalityProvider::Library { path: path.into(), config: String::new() })
        }
        _ => Err(
            "--locality-provider needs aws, file:PATH or library:PATH; `pointsman --help` lists the options"
                .to_string(),
        ),
    }
}

// The value may be a password, so an error never repeats it.
fn parse_override(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_ascii_lowercase(), value.to_string()))
        }
        _ => Err("--set needs NAME=VALUE, for example --set mysql-interfaces=127.0.0.1:26033".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Invocation, String> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn every_option_is_read() {
        let words = "-f -e -D /d -c /c --initial --idle-threads --no-version-check -M --sqlite3-server --hosts-file /h \
                     --locality-provider file:/m --set a-b=c=d";
        let words: Vec<&str> = words.split_whitespace().collect();
        let expected = Options {
            datadir: Some("/d".into()),
            config: Some("/c".into()),
            initial: true,
            reload: false,
            sqlite3_server: true,
            monitor: false,
            hosts_file: Some("/h".into()),
            locality_provider: Some(LocalityProvider::File("/m".into())),
            overrides: vec![("a-b".into(), "c=d".into())],
        };
        assert_eq!(parse_words(&words), Ok(Invocation::Run(expected)));
        assert_eq!(parse_words(&[]), Ok(Invocation::Run(Options::default())));
        let expected = Options { locality_provider: Some(LocalityProvider::Aws), ..Options::default() };
        assert_eq!(parse_words(&["--locality-provider", "aws"]), Ok(Invocation::Run(expected)));
    }

    #[test]
    fn a_library_has_a_configuration_in_any_order() {
        let provider = |words: &[&str]| match parse_words(words) {
            Ok(Invocation::Run(options)) => options.locality_provider,
            other => panic!("{words:?}: {other:?}"),
        };
        let library = |config: &str| {
            Some(LocalityProvider::Library { path: "./a,b:c.so".into(), config: config.to_owned() })
        };
        assert_eq!(library("hush").unwrap().to_string(), "library:./a,b:c.so");
        let named = ["--locality-provider", "library:./a,b:c.so"];
        assert_eq!(provider(&named), library(""));
        assert_eq!(provider(&[&named[..], &["--locality-config", "x y"]].concat()), library("x y"));
        assert_eq!(provider(&[&["--locality-config=x=y"], &named[..]].concat()), library("x=y"));
    }

    #[test]
    fn help_and_version_need_nothing_else() {
        assert_eq!(parse_words(&["-h"]), Ok(Invocation::Help));
        assert_eq!(parse_words(&["--version"]), Ok(Invocation::Version));
    }

    #[test]
    fn mistakes_are_named_and_secrets_are_not() {
        for words in [
            &["--nonsense"][..],
            &["-D"],
            &["-c"],
            &["--initial", "--reload"],
            &["stray"],
            &["--locality-provider", "secret"],
            &["--locality-provider", "file:"],
            &["--locality-provider", "library:"],
            &["--locality-provider", "file:/m", "--locality-config", "secret"],
            &["--locality-config", "secret"],
            &["--set", "=secret"],
            &["--set", "secret"],
        ] {
            let message = parse_words(words).unwrap_err();
            assert!(message.contains("--help") || message.contains("NAME=VALUE"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
