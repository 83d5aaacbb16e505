//! Builds every part once, starts them in order, and joins every thread at the end.

use crate::accounts::{AdminAccounts, UserAccounts};
use crate::bgd::{Dispatcher, Effects};
use crate::cli::{LocalityProvider, Options};
use crate::config::Config;
use crate::digest::statistics::Statistics;
use crate::dns::Dns;
use crate::listeners::Listeners;
use crate::locality::{Aws, Library, Locality, MapFile, Provider};
use crate::monitor::Monitor;
use crate::monitor::health::Health;
use crate::monitor::probe::Probes;
use crate::monitor::suppression::Suppression;
use crate::periodic::Periodic;
use crate::places::{self, Located};
use crate::pool::{Backends, start_keeper};
use crate::ports;
use crate::process::{Certificate, Process};
use crate::runtime::{AllListeners, DaemonRuntime, monitor_tables, runtime_tables};
use crate::session::{Sessions, start_sweeper};
use crate::stats::{self, Sources, history};
use admin::history::History;
use admin::{Admin, Start, Variables};
use crossbeam_channel::Sender;
use sqlite_server::SqliteServer;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use wire::CapabilityFlags;
use wire::auth::AuthPlugin;
use wire::login::ServerOptions;
use wire::service::{ConnectionLimit, Handler, Service, ServiceSpec};
use wire::tls::ServerTls;

/// Stack of a client's thread, in bytes.
pub(crate) const CLIENT_STACK: usize = 256 * 1024;
/// Stack of a thread that runs SQLite, in bytes: a deep expression needs it.
const SQLITE_STACK: usize = 2 * 1024 * 1024;
/// Connections to the admin interface and to the SQLite3 server, each.
const SIDE_CONNECTIONS: usize = 2_000;
/// What running statements get when the daemon stops.
const GRACE: Duration = Duration::from_secs(5);
/// What admin statements get after that.
const ADMIN_GRACE: Duration = Duration::from_secs(1);

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Running statements get up to 5 s.
    Gracefully,
    /// Running statements are cut.
    AtOnce,
    /// As `Gracefully`, and the program begins anew.
    Restart,
}

/// Why the daemon did not start: one line that names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("cannot use data directory {path}: {source}; choose one with -D DIR")]
    Datadir {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another part says it all.
    #[error("{0}")]
    Part(String),
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

fn open_provider(provider: &LocalityProvider, dns: &Arc<Dns>) -> Result<Arc<dyn Provider>, StartError> {
    let opened: Arc<dyn Provider> = match provider {
        LocalityProvider::Aws => Arc::new(Aws::start(dns)?),
        LocalityProvider::File(path) => Arc::new(MapFile::new(path.clone())),
        LocalityProvider::Library { path, config } => Arc::new(Library::open(path, config).map_err(part)?),
    };
    log::info!("locality: {provider} tells where servers are, while mysql-aws_locality_awareness is true");
    Ok(opened)
}

fn part(error: impl std::fmt::Display) -> StartError {
    StartError::Part(error.to_string())
}

/// The running daemon.
pub struct Daemon {
    admin: Arc<Admin>,
    listeners: Arc<AllListeners>,
    backends: Arc<Backends>,
    statistics: Arc<Statistics>,
    dns: Arc<Dns>,
    probes: Arc<Probes>,
    sessions: Arc<Sessions>,
    sweeper: Option<Periodic>,
    historian: Option<Periodic>,
    keeper: Option<Periodic>,
    locality: Arc<Locality>,
    monitoring: Option<(Arc<Monitor>, Dispatcher)>,
}

impl Daemon {
    /// Starts everything. `stop` is where shutdown commands are sent.
    pub fn start(options: &Options, stop: Sender<Stop>) -> Result<Self, StartError> {
        let Located { datadir, file } = places::locate(options).map_err(StartError::Part)?;
        let datadir = &datadir;
        prepare(datadir)?;
        let defaults = Variables {
            sqliteserver_interfaces: sqlite_server::DEFAULT_INTERFACES.to_string(),
            ..Variables::default()
        };
        if let Some(file) = &file {
            file.ignored().iter().for_each(|entry| log::warn!("{entry}"));
        }
        let start = Start { file: file.as_ref(), initial: options.initial, reload: options.reload };
        let admin = Arc::new(Admin::open(datadir, defaults, &options.overrides, &start).map_err(part)?);
        let certificate = Arc::new(Certificate::open(datadir.clone()).map_err(part)?);
        let config = Arc::new(Config::new(admin.variables().map_err(part)?));
        let dns = Dns::new(Arc::clone(&config), options.hosts_file.clone());
        let backends = Arc::new(Backends::new(Arc::clone(&config), Arc::clone(&dns)));
        let provider = options.locality_provider.as_ref();
        let provider = provider.map(|provider| open_provider(provider, &dns)).transpose()?;
        let locality = Arc::new(Locality::new(Arc::clone(&backends), Arc::clone(&dns), provider));
        let sqlite = match options.sqlite3_server {
            true => Some(Arc::new(SqliteServer::open(datadir).map_err(part)?)),
            false => None,
        };
        let statistics = Arc::<Statistics>::default();
        let shared = Shared { config: Arc::clone(&config), certificate: Arc::clone(&certificate) };
        let sessions =
            Arc::new(Sessions::new(Arc::clone(&config), Arc::clone(&backends), Arc::clone(&statistics)));
        let listeners = Arc::new(AllListeners {
            admin: shared.admin_listeners(Arc::clone(&admin)),
            traffic: shared.traffic_listeners(Arc::clone(&sessions)),
            sqlite: sqlite.map(|server| shared.sqlite_listeners(server)),
            ports_file: datadir.join("ports"),
        });
        ports::remove(&listeners.ports_file);

        let mut daemon = Self {
            admin,
            listeners,
            backends,
            statistics,
            dns,
            probes: Arc::new(Probes::new(Arc::clone(&config))),
            sessions,
            sweeper: None,
            historian: None,
            keeper: None,
            locality,
            monitoring: None,
        };
        if let Err(error) = daemon.run(options, datadir, &config, certificate, stop) {
            daemon.stop(Stop::AtOnce);
            return Err(error);
        }
        Ok(daemon)
    }

    // Listeners open last: publishing the variables binds them, and by then all that they serve is there.
    fn run(
        &mut self,
        options: &Options,
        datadir: &Path,
        config: &Arc<Config>,
        certificate: Arc<Certificate>,
        stop: Sender<Stop>,
    ) -> Result<(), StartError> {
        self.dns.start()?;
        if options.monitor {
            self.monitoring = Some(self.start_monitoring(config)?);
        }
        let monitor = self.monitoring.as_ref().map(|(monitor, _)| monitor);
        let registry = self.sessions.registry();
        self.sweeper = Some(start_sweeper(Arc::clone(registry), Arc::clone(config))?);
        self.keeper = Some(start_keeper(Arc::clone(&self.backends))?);
        self.locality.start()?;
        let sources = Sources {
            config: Arc::clone(config),
            backends: Arc::clone(&self.backends),
            sessions: Arc::clone(&self.sessions),
            statistics: Arc::clone(&self.statistics),
            dns: Arc::clone(&self.dns),
            monitor: monitor.cloned(),
            refused: self.listeners.traffic.refused(),
            servers_version: Arc::default(),
        };
        let counted = stats::tables(&sources);
        let tables = runtime_tables(&self.backends, config).into_iter().chain(monitor_tables(monitor));
        for table in tables.chain(counted).chain(stats::locality_table(&self.locality)) {
            self.admin.register(table).map_err(part)?;
        }
        let history = self.open_history(datadir)?;
        if let Some(history) = &history {
            self.historian = Some(history::start(Arc::clone(history), sources.clone())?);
        }
        let listeners = &self.listeners;
        self.admin.attach(Arc::new(DaemonRuntime {
            config: Arc::clone(config),
            backends: Arc::clone(&self.backends),
            locality: Arc::clone(&self.locality),
            listeners: Arc::clone(listeners),
            process: Process::new(Arc::clone(listeners), Arc::clone(registry), certificate, stop),
            sources,
            history,
        }));
        self.admin.load_all().map_err(|error| StartError::Part(error.message))?;
        self.announce();
        Ok(())
    }

    /// Without its file the daemon works all the same.
    fn open_history(&self, datadir: &Path) -> Result<Option<Arc<History>>, StartError> {
        let history = match History::open(datadir) {
            Ok(history) => Arc::new(history),
            Err(error) => {
                log::warn!("{error}");
                return Ok(None);
            }
        };
        for table in history.tables() {
            self.admin.register(table).map_err(part)?;
        }
        Ok(Some(history))
    }

    fn start_monitoring(&self, config: &Arc<Config>) -> Result<(Arc<Monitor>, Dispatcher), StartError> {
        let suppression = Arc::new(Suppression::default());
        let health = Arc::new(Health::default());
        let monitor = Monitor::start(
            Arc::clone(config),
            Arc::clone(&self.backends),
            Arc::clone(&self.dns),
            Arc::clone(&self.probes),
            Arc::clone(&suppression),
            Arc::clone(&health),
        )?;
        let dispatcher = Dispatcher::start(Effects {
            config: Arc::clone(config),
            backends: Arc::clone(&self.backends),
            dns: Arc::clone(&self.dns),
            probes: Arc::clone(&self.probes),
            suppression,
            health,
        })?;
        Ok((Arc::new(monitor), dispatcher))
    }

    fn announce(&self) {
        let list = |listeners: &Listeners| {
            listeners.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        log::info!("pointsman {} is ready", env!("CARGO_PKG_VERSION"));
        log::info!("traffic on {}, admin on {}", list(&self.listeners.traffic), list(&self.listeners.admin));
        if let Some(sqlite) = &self.listeners.sqlite {
            log::info!("SQLite3 server on {}", list(sqlite));
        }
    }

    /// Stops: no new connections, running statements get their time, every thread is joined.
    pub fn stop(mut self, how: Stop) {
        let grace = if how == Stop::AtOnce { Duration::ZERO } else { GRACE };
        ports::remove(&self.listeners.ports_file);
        self.stop_traffic(grace);
        self.sweeper = None;
        self.historian = None;
        self.keeper = None;
        self.locality.stop();
        if let Some((monitor, dispatcher)) = self.monitoring.take() {
            dispatcher.stop();
            monitor.stop();
        }
        self.probes.close();
        self.dns.stop();
        self.listeners.admin.stop(grace.min(ADMIN_GRACE));
        if let Some(sqlite) = &self.listeners.sqlite {
            sqlite.stop(Duration::ZERO);
        }
        // They hold each other; with this gone the last holder closes the database.
        self.admin.detach();
    }

    // A session that waits for its server cannot be ended from the client's side alone: when
    // the time is over the backend connections are cut too.
    fn stop_traffic(&self, grace: Duration) {
        self.backends.end_waiting();
        let (done, over) = crossbeam_channel::bounded::<()>(0);
        thread::scope(|scope| {
            let cutter = thread::Builder::new().name("shutdown-cut".into()).spawn_scoped(scope, || {
                // Disconnected: every session ended in time.
                if over.recv_timeout(grace).is_err_and(|error| error.is_timeout()) {
                    self.backends.close();
                }
            });
            if let Err(error) = cutter {
                log::warn!("cannot start a thread: {error}; backend connections are cut now");
                self.backends.close();
            }
            self.listeners.traffic.stop(grace);
            drop(done);
        });
        self.backends.close();
    }
}

fn prepare(datadir: &Path) -> Result<(), StartError> {
    let refused = |source| StartError::Datadir { path: datadir.to_path_buf(), source };
    std::fs::create_dir_all(datadir).map_err(refused)?;
    std::fs::read_dir(datadir).map(drop).map_err(refused)
}

/// What every listener needs.
struct Shared {
    config: Arc<Config>,
    certificate: Arc<Certificate>,
}

impl Shared {
    fn options(&self) -> impl Fn() -> ServerOptions + Send + Sync + 'static {
        let (config, certificate) = (Arc::clone(&self.config), Arc::clone(&self.certificate));
        move || server_options(&config.variables(), certificate.current())
    }

    fn traffic_listeners(&self, sessions: Arc<Sessions>) -> Listeners {
        let (options, accounts) = (self.options(), UserAccounts::new(Arc::clone(&self.config)));
        let options = move || ServerOptions { capabilities: crate::session::CAPABILITIES, ..options() };
        let handler: Handler = Arc::new(move |accepted| sessions.serve(accepted, &options(), &accounts));
        let config = Arc::clone(&self.config);
        let limit: ConnectionLimit = Arc::new(move || config.variables().max_connections);
        let spec = ServiceSpec { name: "traffic", stack: CLIENT_STACK };
        Listeners::new(Service::new(spec, limit, handler), "mysql-interfaces")
    }

    fn admin_listeners(&self, admin: Arc<Admin>) -> Listeners {
        let (options, config) = (self.options(), Arc::clone(&self.config));
        let handler: Handler = Arc::new(move |accepted| {
            let accounts = AdminAccounts::new(Arc::clone(&config), accepted.peer);
            admin.serve(accepted, &options(), &accounts);
        });
        let spec = ServiceSpec { name: "admin", stack: SQLITE_STACK };
        let service = Service::privileged(spec, Arc::new(|| SIDE_CONNECTIONS), handler);
        Listeners::new(service, "admin-mysql_ifaces")
    }

    fn sqlite_listeners(&self, server: Arc<SqliteServer>) -> Listeners {
        let (options, accounts) = (self.options(), UserAccounts::new(Arc::clone(&self.config)));
        let handler: Handler = Arc::new(move |accepted| server.serve(accepted, &options(), &accounts));
        let spec = ServiceSpec { name: "sqlite", stack: SQLITE_STACK };
        Listeners::new(
            Service::new(spec, Arc::new(|| SIDE_CONNECTIONS), handler),
            "sqliteserver-mysql_ifaces",
        )
    }
}

fn server_options(variables: &Variables, tls: ServerTls) -> ServerOptions {
    let mut capabilities = wire::login::CAPABILITIES;
    capabilities.set(CapabilityFlags::CLIENT_DEPRECATE_EOF, variables.enable_client_deprecate_eof);
    ServerOptions {
        server_version: variables.server_version.clone(),
        default_plugin: match variables.default_plugin_sha2 {
            true => AuthPlugin::CachingSha2,
            false => AuthPlugin::Native,
        },
        capabilities,
        tls: Some(tls),
        offer_tls: variables.have_ssl,
        compress: variables.have_compress,
        timeout: variables.connect_timeout_client,
    }
}
