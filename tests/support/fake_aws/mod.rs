//! AWS on loopback: instance and task metadata, container credentials, STS and RDS on one port, told apart by path and action.
//! It checks tokens and signatures, and does as it is told by [`Fault`]s.

mod http;
mod sigv4;

use http::{Request, Response};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

pub const ACCOUNT: &str = "111122223333";
pub const REGION: &str = "eu-north-1";
pub const KEY: &str = "AKIDFAKE";
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYhushhush";
pub const ROLE: &str = "pointsman-role";
pub const WEB_TOKEN: &str = "web.identity.token";
pub const CONTAINER_TOKEN: &str = "container-token";

/// What comes instead of an answer.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing, for as long as the fake is there.
    Silent,
    /// The connection is closed.
    Close,
    /// It is closed amid the answer.
    Half,
    /// The answer comes, but late.
    Late(Duration),
    /// This status and, for APIs, this error code.
    Refuse(u16, &'static str),
    /// This status and body.
    Say(u16, String),
    /// A redirect to here.
    Redirect(String),
}

#[derive(Debug, Clone)]
pub struct FakeInstance {
    pub id: String,
    pub host: String,
    pub zone: String,
}

#[derive(Debug, Clone)]
pub struct FakeCluster {
    pub writer: String,
    pub reader: String,
    pub custom: Vec<String>,
    pub members: Vec<(String, bool)>,
}

/// What is to be told, and what was asked.
pub struct Scene {
    pub zone: String,
    /// By Region.
    pub instances: HashMap<String, Vec<FakeInstance>>,
    pub clusters: HashMap<String, Vec<FakeCluster>>,
    pub page: usize,
    /// The instance has a role.
    pub role: bool,
    /// How long temporary credentials hold.
    pub lifetime: Duration,
    /// Keys to their secrets and tokens.
    keys: HashMap<String, (String, String)>,
    metadata_tokens: Vec<String>,
    /// How many things have been given out.
    given: usize,
    /// By route; each counts as often as it says.
    faults: HashMap<&'static str, (usize, Fault)>,
    /// What was asked, in order: the route, and where it matters the Region and the key.
    calls: Vec<String>,
    stopping: bool,
}

/// The server.
pub struct FakeAws {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    scene: Mutex<Scene>,
    stopped: Condvar,
}

impl Shared {
    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap()
    }
}

impl Default for FakeAws {
    fn default() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let scene = Scene {
            zone: "eu-north-1a".into(),
            instances: HashMap::new(),
            clusters: HashMap::new(),
            page: 100,
            role: true,
            lifetime: Duration::from_secs(3_600),
            keys: HashMap::from([(KEY.into(), (SECRET.into(), String::new()))]),
            metadata_tokens: Vec::new(),
            given: 0,
            faults: HashMap::new(),
            calls: Vec::new(),
            stopping: false,
        };
        let shared = Arc::new(Shared { scene: Mutex::new(scene), stopped: Condvar::new() });
        let its = Arc::clone(&shared);
        let acceptor = thread::spawn(move || {
            let mut handlers = Vec::new();
            for stream in listener.incoming() {
                if its.scene().stopping {
                    break;
                }
                let its = Arc::clone(&its);
                handlers.push(thread::spawn(move || its.serve(stream.unwrap())));
            }
            handlers.into_iter().for_each(|handler| handler.join().unwrap());
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }
}

impl Drop for FakeAws {
    fn drop(&mut self) {
        self.shared.scene().stopping = true;
        self.shared.stopped.notify_all();
        // Ends the wait for a connection.
        drop(TcpStream::connect(self.address));
        let joined = self.acceptor.take().unwrap().join();
        assert!(joined.is_ok() || thread::panicking(), "the fake failed");
    }
}

impl FakeAws {
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
    pub fn scene(&self) -> MutexGuard<'_, Scene> {
        self.shared.scene()
    }
    /// From now on this comes instead, so many times.
    pub fn fail(&self, route: &'static str, times: usize, fault: Fault) {
        self.scene().faults.insert(route, (times, fault));
    }
    pub fn mend(&self) {
        self.scene().faults.clear();
    }
    /// What was asked since the last time.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.scene().calls)
    }
    /// Whether anything was asked since then.
    pub fn was_asked(&self) -> bool {
        !self.scene().calls.is_empty()
    }
    pub fn add_instance(&self, id: &str, zone: &str) -> String {
        let host = format!("{id}.cabc.{REGION}.rds.amazonaws.com");
        let instance = FakeInstance { id: id.into(), host: host.clone(), zone: zone.into() };
        self.scene().instances.entry(REGION.into()).or_default().push(instance);
        host
    }
}

impl Scene {
    /// Temporary credentials that hold from now on.
    fn grant(&mut self, kind: &str) -> [String; 4] {
        self.given += 1;
        let (key, secret, token) = (
            format!("ASIA{kind}{}", self.given),
            format!("secret/{}", self.given),
            format!("token+{}=", self.given),
        );
        self.keys.insert(key.clone(), (secret.clone(), token.clone()));
        let expiry = jiff::Timestamp::try_from(SystemTime::now() + self.lifetime).unwrap();
        [key, secret, token, expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()]
    }
    /// Temporary credentials that have been given so far are over.
    pub fn expire(&mut self) {
        self.keys.retain(|key, _| key == KEY);
    }
    /// Tokens of the instance metadata service are over.
    pub fn forget_metadata_tokens(&mut self) {
        self.metadata_tokens.clear();
    }
    fn answer(&mut self, request: &Request) -> Response {
        let path = request.path.as_str();
        match (request.method.as_str(), path) {
            ("PUT", "/latest/api/token") => {
                let ttl = request
                    .header("x-aws-ec2-metadata-token-ttl-seconds")
                    .and_then(|ttl| ttl.parse::<u32>().ok());
                if !ttl.is_some_and(|ttl| (1..=21_600).contains(&ttl))
                    || request.header("x-forwarded-for").is_some()
                {
                    return Response::new(400, "");
                }
                self.given += 1;
                let token = format!("metadata-token-{}==", self.given);
                self.metadata_tokens.push(token.clone());
                Response::new(200, token)
            }
            ("GET", path) if path.starts_with("/latest/") => {
                let token = request.header("x-aws-ec2-metadata-token").unwrap_or_default();
                match self.metadata_tokens.iter().any(|given| given == token) {
                    true => self.metadata(path),
                    false => Response::new(401, ""),
                }
            }
            ("GET", "/v4/container/task") => Response::new(
                200,
                format!(
                    r#"{{"TaskARN":"arn:aws:ecs:{REGION}:{ACCOUNT}:task/c/1","AvailabilityZone":"{}"}}"#,
                    self.zone
                ),
            ),
            ("GET", "/credentials") => match request.header("authorization") {
                Some(CONTAINER_TOKEN) => Response::new(200, json(self.grant("TASK"))),
                _ => Response::new(401, ""),
            },
            ("POST", "/") => match request.parameter("Version").as_deref() {
                Some("2011-06-15") => self.sts(request),
                Some("2014-10-31") => self.rds(request),
                _ => refusal(400, "NoSuchVersion"),
            },
            _ => Response::new(404, ""),
        }
    }
    fn metadata(&mut self, path: &str) -> Response {
        const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
        let body = match path.strip_prefix("/latest/meta-data/placement/") {
            Some("region") => REGION.to_owned(),
            Some("availability-zone") => self.zone.clone(),
            Some("availability-zone-id") => "eun1-az1".to_owned(),
            _ if path == "/latest/dynamic/instance-identity/document" => {
                format!(r#"{{"accountId":"{ACCOUNT}","region":"{REGION}"}}"#)
            }
            _ if self.role && path == ROLES => ROLE.to_owned(),
            _ if self.role && path.strip_prefix(ROLES) == Some(ROLE) => json(self.grant("ROLE")),
            _ => return Response::new(404, ""),
        };
        Response::new(200, body)
    }
    fn sts(&mut self, request: &Request) -> Response {
        let action = request.parameter("Action").unwrap_or_default();
        let named = ["RoleArn", "RoleSessionName"].iter().all(|name| request.parameter(name).is_some());
        let allowed = match action.as_str() {
            "AssumeRoleWithWebIdentity" => {
                named
                    && request.header("authorization").is_none()
                    && request.parameter("WebIdentityToken").as_deref() == Some(WEB_TOKEN)
            }
            "AssumeRole" => match self.signer(request, "sts") {
                Ok(_) => named && request.parameter("ExternalId").as_deref() == Some("partner 1&2"),
                Err(response) => return response,
            },
            _ => return refusal(400, "InvalidAction"),
        };
        if !allowed {
            return refusal(403, "AccessDenied");
        }
        let [key, secret, token, expiry] = self.grant("STS");
        let credentials = format!(
            "<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>\
             <SessionToken>{token}</SessionToken><Expiration>{expiry}</Expiration>"
        );
        result(&action, &format!("<Credentials>{credentials}</Credentials>"))
    }
    /// The Region that a request is signed for.
    fn signer(&self, request: &Request, service: &str) -> Result<String, Response> {
        let Some(claim) = sigv4::claim(request) else {
            return Err(refusal(403, "MissingAuthenticationToken"));
        };
        let Some((secret, token)) = self.keys.get(claim.key) else {
            let code = if claim.key == KEY { "InvalidClientTokenId" } else { "ExpiredToken" };
            return Err(refusal(403, code));
        };
        if request.header("x-amz-security-token").unwrap_or_default() != token {
            return Err(refusal(403, "InvalidClientTokenId"));
        }
        let now = jiff::Timestamp::now().strftime("%Y%m%d").to_string();
        match claim.service == service && claim.date == now && sigv4::verify(request, &claim, secret) {
            true => Ok(claim.region.to_owned()),
            false => Err(refusal(403, "SignatureDoesNotMatch")),
        }
    }
    fn rds(&self, request: &Request) -> Response {
        let region = match self.signer(request, "rds") {
            Ok(region) => region,
            Err(response) => return response,
        };
        let action = request.parameter("Action").unwrap_or_default();
        let items: Vec<String> = match action.as_str() {
            "DescribeDBInstances" => {
                let filter = request.form().into_iter();
                let filter: Vec<String> = filter
                    .filter(|(name, _)| name.starts_with("Filters.Filter.1.Values.Value."))
                    .map(|(_, value)| value)
                    .collect();
                let named = request.parameter("Filters.Filter.1.Name");
                assert_eq!(named.is_some(), !filter.is_empty(), "{}", request.body);
                assert!(named.is_none_or(|name| name == "db-instance-id"), "{}", request.body);
                let all = self.instances.get(&region).into_iter().flatten();
                let wanted = all.filter(|instance| filter.is_empty() || filter.contains(&instance.id));
                wanted.map(|instance| instance.xml(&region)).collect()
            }
            "DescribeDBClusters" => {
                self.clusters.get(&region).into_iter().flatten().map(|cluster| cluster.xml(&region)).collect()
            }
            _ => return refusal(400, "InvalidAction"),
        };
        let list = if action == "DescribeDBInstances" { "DBInstances" } else { "DBClusters" };
        // A marker is opaque, and may hold what a form escapes.
        let begin = match request.parameter("Marker") {
            None => 0,
            Some(marker) => marker.strip_prefix("from &=").and_then(|from| from.parse().ok()).unwrap(),
        };
        let end = items.len().min(begin + self.page);
        let marker = match end < items.len() {
            true => format!("<Marker>from &amp;={end}</Marker>"),
            false => String::new(),
        };
        result(&action, &format!("<{list}>{}</{list}>{marker}", items[begin..end].concat()))
    }
}

impl FakeInstance {
    fn xml(&self, region: &str) -> String {
        format!(
            "<DBInstance><DBInstanceIdentifier>{0}</DBInstanceIdentifier><Endpoint><Address>{1}</Address></Endpoint>\
             <AvailabilityZone>{2}</AvailabilityZone><DBInstanceArn>arn:aws:rds:{region}:{ACCOUNT}:db:{0}</DBInstanceArn></DBInstance>",
            self.id, self.host, self.zone
        )
    }
}

impl FakeCluster {
    fn xml(&self, region: &str) -> String {
        let custom: String = self.custom.iter().map(|host| format!("<member>{host}</member>")).collect();
        let member = |(id, writer): &(String, bool)| {
            format!(
                "<DBClusterMember><DBInstanceIdentifier>{id}</DBInstanceIdentifier>\
                 <IsClusterWriter>{writer}</IsClusterWriter></DBClusterMember>"
            )
        };
        let members: String = self.members.iter().map(member).collect();
        format!(
            "<DBCluster><Endpoint>{}</Endpoint><ReaderEndpoint>{}</ReaderEndpoint><CustomEndpoints>{custom}</CustomEndpoints>\
             <DBClusterMembers>{members}</DBClusterMembers>\
             <DBClusterArn>arn:aws:rds:{region}:{ACCOUNT}:cluster:c</DBClusterArn></DBCluster>",
            self.writer, self.reader
        )
    }
}

fn json([key, secret, token, expiry]: [String; 4]) -> String {
    format!(
        r#"{{"Code":"Success","AccessKeyId":"{key}","SecretAccessKey":"{secret}","Token":"{token}","Expiration":"{expiry}"}}"#
    )
}

fn result(action: &str, content: &str) -> Response {
    let namespace = "http://rds.amazonaws.com/doc/2014-10-31/";
    Response::new(
        200,
        format!(
            "<{action}Response xmlns=\"{namespace}\"><{action}Result>{content}</{action}Result>\
             <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{action}Response>"
        ),
    )
}

fn refusal(status: u16, code: &str) -> Response {
    let body = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    );
    Response::new(status, body)
}

impl Shared {
    // A client that goes away early is none of the fake's mistakes.
    fn serve(&self, mut stream: TcpStream) {
        let Ok(Some(request)) = http::read(&mut stream) else { return };
        let route = match request.parameter("Action") {
            Some(action) => action,
            None => request.path.clone(),
        };
        let mut scene = self.scene();
        let call = match sigv4::claim(&request) {
            Some(claim) => format!("{route} {} {}", claim.region, claim.key),
            None => route.clone(),
        };
        scene.calls.push(call);
        let fault = scene.faults.iter_mut().find(|(name, (times, _))| **name == route && *times > 0);
        let fault = fault.map(|(_, (times, fault))| {
            *times -= 1;
            fault.clone()
        });
        let sent = match fault {
            None => {
                let response = scene.answer(&request);
                drop(scene);
                http::write(&mut stream, &response)
            }
            Some(Fault::Silent) => {
                drop(self.stopped.wait_while(scene, |scene| !scene.stopping).unwrap());
                Ok(())
            }
            Some(Fault::Late(pause)) => {
                let (mut scene, _) =
                    self.stopped.wait_timeout_while(scene, pause, |scene| !scene.stopping).unwrap();
                let response = scene.answer(&request);
                drop(scene);
                http::write(&mut stream, &response)
            }
            Some(Fault::Close) => Ok(()),
            Some(Fault::Half) => {
                let response = scene.answer(&request);
                drop(scene);
                http::write_half(&mut stream, &response)
            }
            Some(Fault::Refuse(status, code)) => {
                drop(scene);
                http::write(&mut stream, &refusal(status, code))
            }
            Some(Fault::Say(status, body)) => {
                drop(scene);
                http::write(&mut stream, &Response::new(status, body))
            }
            Some(Fault::Redirect(to)) => {
                drop(scene);
                let response = Response { headers: vec![("Location", to)], ..Response::new(302, "") };
                http::write(&mut stream, &response)
            }
        };
        drop(sent);
    }
}
