//! Reaching a machine: the connection, who it is, and who we are.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::MethodKind;
use russh::client::{self, AuthResult, DisconnectReason, Handle, KeyboardInteractiveAuthResponse};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, load_secret_key};
use tapdeck_term::{is_unsafe, printable, printable_lines};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::super::spawn::Leader;
use super::super::{CommandSpec, NewHost};
use super::config::HostConfig;
use super::fault::Fault;
use super::hosts::{Acquaintance, Known, remember};
use crate::sys::InheritedSignals;

/// How long a machine may take to answer, and how long for each step before one is known to it.
const CONNECT: Duration = Duration::from_secs(20);
const GREET: Duration = Duration::from_secs(120);
/// A quiet connection is tried this often, and given up after so many tries in vain.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_MAX: usize = 3;
/// Chunks of output that may wait for a slow reader before the far side has to.
const BUFFERED: usize = 16;
/// Keys that are tried; servers give up after a few.
const KEYS: usize = 8;

/// What the connecting thread says to the thread that waits for it.
pub(super) enum Said {
    Note(String),
    Ask { question: String, secret: bool, answer: oneshot::Sender<Option<String>> },
    Ready,
    Failed(Fault),
}

/// The way to the thread that waits.
#[derive(Clone)]
pub(super) struct Asker(pub(super) std::sync::mpsc::Sender<Said>);

impl Asker {
    fn note(&self, text: String) {
        // A thread that waits no longer needs no notes.
        let _ = self.0.send(Said::Note(text));
    }

    async fn ask(&self, question: String, secret: bool) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Said::Ask { question, secret, answer }).ok()?;
        answered.await.ok().flatten()
    }
}

/// Where to go and as whom, everything decided.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) config: HostConfig,
    /// Keys named by the user, who means these and no others.
    pub(super) named: Vec<PathBuf>,
    pub(super) home: PathBuf,
    pub(super) accept_new: bool,
    /// Machines to go through, one after another.
    pub(super) through: Vec<Target>,
    /// What reaches the first of them, or the machine itself, instead of a plain connection.
    pub(super) command: Option<String>,
}

impl Target {
    fn known_hosts(&self) -> Vec<PathBuf> {
        if !self.config.known_hosts.is_empty() {
            return self.config.known_hosts.clone();
        }
        let own = ["known_hosts", "known_hosts2"].map(|name| self.home.join(".ssh").join(name));
        own.into_iter().chain([PathBuf::from("/etc/ssh/ssh_known_hosts")]).collect()
    }

    /// The key files to try: those that were named must be there.
    fn key_files(&self) -> Vec<PathBuf> {
        if !self.named.is_empty() {
            return self.named.clone();
        }
        if !self.config.identities.is_empty() {
            return self.config.identities.clone();
        }
        let usual = ["id_ed25519", "id_ecdsa", "id_rsa"].map(|name| self.home.join(".ssh").join(name));
        usual.into_iter().filter(|path| path.exists()).collect()
    }
}

/// Our side of the connection: judges the machine, and notes why it was lost.
pub(super) struct Judge {
    target: Target,
    acquaintance: Acquaintance,
    asker: Asker,
    /// What went wrong, in words.
    pub(super) trouble: Arc<Mutex<Option<Fault>>>,
}

impl Judge {
    async fn judge(&self, key: &PublicKey) -> Result<(), Fault> {
        let Target { host, port, .. } = &self.target;
        let print = key.fingerprint(HashAlg::Sha256);
        match self.acquaintance.judge(key) {
            Known::Same => return Ok(()),
            Known::Changed(file, line) => {
                return Err(format!(
                    "{host} IS NOT WHO IT WAS: its key is {print}, which is not the one in {}, line {line}. The \
                     connection may be intercepted, or it was set up anew; ask its keeper, and only then remove that line",
                    file.display()
                )
                .into());
            }
            Known::Revoked(file, line) => {
                return Err(format!(
                    "the key of {host}, {print}, must not be believed any more, says {}, line {line}",
                    file.display()
                )
                .into());
            }
            Known::New => {}
        }
        if !self.target.accept_new && !self.target.config.accept_new {
            let new = NewHost { name: host.clone(), fingerprint: print.to_string() };
            match self.asker.ask(new.question(), false).await {
                Some(answer) if new.is_confirmed_by(&answer) => {}
                Some(_) => return Err(format!("{host} was not believed").into()),
                None => {
                    return Err(Fault::UnknownKey(format!(
                        "{host} is new to you, and there is no user to ask: its key is {print}"
                    )));
                }
            }
        }
        let files = self.target.known_hosts();
        let Some(file) = files.first() else { return Ok(()) };
        match remember(file, host, *port, key) {
            Ok(()) => {
                self.asker.note(format!("{host} with the key {print} is remembered in {}", file.display()))
            }
            Err(e) => self.asker.note(format!("{host} could not be remembered: {e}")),
        }
        Ok(())
    }

    fn set_trouble(&self, fault: impl Into<Fault>) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault.into());
    }
}

impl client::Handler for Judge {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKey) -> Result<bool, russh::Error> {
        match self.judge(key).await {
            Ok(()) => Ok(true),
            Err(why) => {
                self.set_trouble(why);
                Ok(false)
            }
        }
    }

    async fn auth_banner(&mut self, banner: &str, _: &mut client::Session) -> Result<(), russh::Error> {
        let banner: String = banner.chars().filter(|c| *c != '\r').take(4096).collect();
        self.asker.note(printable_lines(banner.trim()));
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<russh::Error>) -> Result<(), russh::Error> {
        match reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                self.set_trouble(format!("it said: {}", printable(&info.message)));
                Ok(())
            }
            DisconnectReason::Error(e) => {
                self.set_trouble(match &e {
                    russh::Error::KeepaliveTimeout => Fault::from("it does not answer any more"),
                    russh::Error::HUP | russh::Error::Disconnect => "the connection was closed".into(),
                    russh::Error::IO(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                        "the connection was closed".into()
                    }
                    other => other.to_string().into(),
                });
                Err(e)
            }
        }
    }
}

/// A connection on which one is known.
pub(super) struct Connection {
    pub(super) handle: Handle<Judge>,
    pub(super) trouble: Arc<Mutex<Option<Fault>>>,
    /// What carries it.
    _way: Vec<Handle<Judge>>,
    _pipe: Option<Leader>,
}

/// Connects, through whatever lies between, and makes oneself known.
pub(super) async fn connect(target: &Target, asker: Asker) -> Result<Connection, Fault> {
    let mut way: Vec<Handle<Judge>> = Vec::new();
    let mut pipe = None;
    for hop in target.through.iter().chain([target]) {
        let (last, through) = (std::ptr::eq(hop, target), way.last());
        let reached = async {
            let stream = match (through, &target.command) {
                (Some(before), _) => beyond(before, hop).await?,
                (None, Some(command)) => {
                    let (held, stream) = piped(command, hop)?;
                    pipe = Some(held);
                    stream
                }
                (None, None) => directly(hop).await?,
            };
            greet(hop, stream, &asker).await
        };
        let reached = reached.await.map_err(|e| match (&target.command, way.is_empty()) {
            (Some(command), true) => e.within(&format!("through {command:?}")),
            _ => e,
        });
        let reached =
            reached.map_err(|e| if last { e } else { e.within(&format!("on the way, {}", hop.host)) });
        let (handle, trouble) = reached?;
        if last {
            return Ok(Connection { handle, trouble, _way: way, _pipe: pipe });
        }
        way.push(handle);
    }
    Err("there is no way to it".into())
}

/// Bytes both ways, whatever carries them.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

async fn directly(target: &Target) -> Result<Box<dyn Duplex>, String> {
    let (host, port) = (target.host.as_str(), target.port);
    let stream = limited(CONNECT, TcpStream::connect((host, port))).await?;
    let stream = stream.map_err(|e| format!("port {port} cannot be reached: {e}"))?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    Ok(Box::new(stream))
}

/// From a machine where one is known to the next.
async fn beyond(before: &Handle<Judge>, target: &Target) -> Result<Box<dyn Duplex>, String> {
    let (host, port) = (target.host.clone(), target.port);
    let opened = before.channel_open_direct_tcpip(host, port.into(), "127.0.0.1", 0);
    let channel =
        limited(CONNECT, opened).await?.map_err(|e| format!("port {port} cannot be reached: {e}"))?;
    Ok(Box::new(channel.into_stream()))
}

/// A command that carries the bytes. It is gone with the connection, and whatever it started with
/// it.
fn piped(command: &str, target: &Target) -> Result<(Leader, Box<dyn Duplex>), String> {
    // A shell reads the command, and must find no other in a name.
    let plain = |c: char| c.is_alphanumeric() || "._-:%@+".contains(c);
    for name in [&target.host, &target.user] {
        if name.starts_with('-') || !name.chars().all(plain) {
            return Err(format!("{name:?} is no name that can be put into a command"));
        }
    }
    let line = command
        .replace("%%", "\0")
        .replace("%h", &target.host)
        .replace("%p", &target.port.to_string())
        .replace("%r", &target.user)
        .replace('\0', "%");
    let spec = CommandSpec::new(["/bin/sh", "-c", &format!("exec {line}")]);
    let failed = |e: std::io::Error| e.to_string();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
    let other = OwnedFd::from(theirs.try_clone().map_err(failed)?);
    // What it has to complain about is for the user to see.
    let stdio = [Stdio::from(OwnedFd::from(theirs)), Stdio::from(other), Stdio::inherit()];
    let leader = Leader::spawn(&spec, InheritedSignals::note(), None, stdio).map_err(|e| e.to_string())?;
    ours.set_nonblocking(true).map_err(failed)?;
    Ok((leader, Box::new(tokio::net::UnixStream::from_std(ours).map_err(failed)?)))
}

/// Makes oneself known to a machine, once it has been judged.
async fn greet(
    target: &Target,
    stream: Box<dyn Duplex>,
    asker: &Asker,
) -> Result<(Handle<Judge>, Arc<Mutex<Option<Fault>>>), Fault> {
    let (host, port) = (target.host.as_str(), target.port);
    let acquaintance = Acquaintance::read(&target.known_hosts(), host, port)?;
    let mut config = client::Config {
        client_id: russh::SshId::Standard(concat!("SSH-2.0-tapdeck_", env!("CARGO_PKG_VERSION")).into()),
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: KEEPALIVE_MAX,
        channel_buffer_size: BUFFERED,
        ..client::Config::default()
    };
    // A machine has several keys; it is to show the one that is known.
    let known = acquaintance.algorithms();
    let fits = |a: &Algorithm| known.iter().any(|k| k == a || (rsa(k) && rsa(a)));
    let mut keys = config.preferred.key.to_vec();
    keys.sort_by_key(|a| !fits(a));
    config.preferred.key = keys.into();
    let trouble = Arc::new(Mutex::new(None));
    let judge =
        Judge { target: target.clone(), acquaintance, asker: asker.clone(), trouble: trouble.clone() };
    let said = |e: russh::Error| {
        trouble.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(|| match e {
            russh::Error::HUP | russh::Error::Disconnect => "it closed the connection".into(),
            russh::Error::Version => "it does not speak ssh".into(),
            e => e.to_string().into(),
        })
    };
    let mut handle =
        limited(GREET, client::connect_stream(Arc::new(config), stream, judge)).await?.map_err(said)?;
    authenticate(&mut handle, target, asker).await?;
    Ok((handle, trouble))
}

fn rsa(algorithm: &Algorithm) -> bool {
    matches!(algorithm, Algorithm::Rsa { .. })
}

async fn limited<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(limit, work).await.map_err(|_| format!("no answer within {} s", limit.as_secs()))
}

/// What has been tried so far.
struct Attempt<'a> {
    handle: &'a mut Handle<Judge>,
    user: &'a str,
    asker: &'a Asker,
    tried: Vec<String>,
    offered: Vec<PublicKey>,
    methods: Option<russh::MethodSet>,
}

async fn authenticate(handle: &mut Handle<Judge>, target: &Target, asker: &Asker) -> Result<(), Fault> {
    let user = target.user.as_str();
    let mut attempt = Attempt { handle, user, asker, tried: Vec::new(), offered: Vec::new(), methods: None };
    if attempt.nothing().await? {
        return Ok(());
    }
    let agent_first = target.named.is_empty() && !target.config.identities_only;
    if attempt.allows(MethodKind::PublicKey) {
        if agent_first && attempt.agent().await? {
            return Ok(());
        }
        for path in target.key_files() {
            if attempt.key_file(&path, !target.named.is_empty()).await? {
                return Ok(());
            }
        }
    }
    if attempt.allows(MethodKind::KeyboardInteractive) && attempt.questions().await? {
        return Ok(());
    }
    if attempt.allows(MethodKind::Password) && attempt.password(&target.host).await? {
        return Ok(());
    }
    let tried = match attempt.tried.as_slice() {
        [] => "there was no key to show".to_owned(),
        tried => format!("tried {}", tried.join(", ")),
    };
    Err(Fault::NotAdmitted(format!("it does not let {user} in; {tried}")))
}

impl Attempt<'_> {
    fn judge(&mut self, result: AuthResult) -> bool {
        match result {
            AuthResult::Success => true,
            AuthResult::Failure { remaining_methods, .. } => {
                self.methods = Some(remaining_methods);
                false
            }
        }
    }

    fn allows(&self, method: MethodKind) -> bool {
        self.methods.as_ref().is_none_or(|m| m.contains(&method))
    }

    /// Asks without anything to show, which tells what may be shown.
    async fn nothing(&mut self) -> Result<bool, String> {
        let result = limited(GREET, self.handle.authenticate_none(self.user)).await?;
        Ok(self.judge(result.map_err(|e| e.to_string())?))
    }

    async fn hash_for(&self, key: &Algorithm) -> Result<Option<HashAlg>, String> {
        if !rsa(key) {
            return Ok(None);
        }
        let best = self.handle.best_supported_rsa_hash().await.map_err(|e| e.to_string())?;
        // A server that does not say can still be expected to know this one; the oldest is no
        // longer believed.
        Ok(best.unwrap_or(Some(HashAlg::Sha256)))
    }

    async fn agent(&mut self) -> Result<bool, String> {
        // No agent is no error: there may be key files.
        let Ok(mut agent) = AgentClient::connect_env().await else { return Ok(false) };
        let Ok(Ok(identities)) = limited(CONNECT, agent.request_identities()).await else { return Ok(false) };
        for identity in identities.into_iter().take(KEYS) {
            let AgentIdentity::PublicKey { key, comment } = identity else { continue };
            let hash = self.hash_for(&key.algorithm()).await?;
            let asked = self.handle.authenticate_publickey_with(self.user, key.clone(), hash, &mut agent);
            self.tried.push(format!("{comment} of the agent"));
            self.offered.push(key);
            match limited(GREET, asked).await? {
                Ok(result) => {
                    if self.judge(result) {
                        return Ok(true);
                    }
                }
                // An agent that will not sign may hold other keys that it will.
                Err(e) => self.tried.push(format!("which said: {e}")),
            }
        }
        Ok(false)
    }

    async fn key_file(&mut self, path: &Path, named: bool) -> Result<bool, String> {
        let shown = path.display();
        let Some(key) = self.load(path).await.or_else(|e| {
            // Of a key that was named, one wants to know why it cannot be used.
            if named { Err(format!("{shown}: {e}")) } else { Ok(None) }
        })?
        else {
            self.tried.push(format!("{shown} (locked, without a passphrase)"));
            return Ok(false);
        };
        if self.offered.contains(key.public_key()) {
            return Ok(false);
        }
        let hash = self.hash_for(&key.algorithm()).await?;
        self.tried.push(shown.to_string());
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
        let result = limited(GREET, self.handle.authenticate_publickey(self.user, key)).await?;
        Ok(self.judge(result.map_err(|e| e.to_string())?))
    }

    /// A key from its file; one that is locked needs a person.
    async fn load(&self, path: &Path) -> Result<Option<PrivateKey>, String> {
        match load_secret_key(path, None) {
            Ok(key) => return Ok(Some(key)),
            Err(russh::keys::Error::KeyIsEncrypted) => {}
            Err(e) => return Err(e.to_string()),
        }
        for _ in 0..3 {
            let question = format!("Passphrase for {}: ", path.display());
            let Some(answer) = self.asker.ask(question, true).await.filter(|a| !a.is_empty()) else {
                return Ok(None);
            };
            if let Ok(key) = load_secret_key(path, Some(&answer)) {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    async fn questions(&mut self) -> Result<bool, String> {
        let begun = self.handle.authenticate_keyboard_interactive_start(self.user, None);
        let mut answer = limited(GREET, begun).await?.map_err(|e| e.to_string())?;
        for _ in 0..10 {
            let prompts = match answer {
                KeyboardInteractiveAuthResponse::Success => return Ok(true),
                KeyboardInteractiveAuthResponse::Failure { remaining_methods, .. } => {
                    self.methods = Some(remaining_methods);
                    return Ok(false);
                }
                KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
            };
            let mut answers = Vec::new();
            for prompt in prompts {
                let question: String = prompt.prompt.chars().filter(|c| !is_unsafe(*c)).take(512).collect();
                let Some(answer) = self.asker.ask(question, !prompt.echo).await else { return Ok(false) };
                answers.push(answer);
            }
            self.tried.push("your answers".into());
            let told = self.handle.authenticate_keyboard_interactive_respond(answers);
            answer = limited(GREET, told).await?.map_err(|e| e.to_string())?;
        }
        Ok(false)
    }

    async fn password(&mut self, host: &str) -> Result<bool, String> {
        for _ in 0..3 {
            let question = format!("Password of {} on {host}: ", self.user);
            let Some(answer) = self.asker.ask(question, true).await else { return Ok(false) };
            self.tried.push("a password".into());
            let result = limited(GREET, self.handle.authenticate_password(self.user, answer)).await?;
            if self.judge(result.map_err(|e| e.to_string())?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
