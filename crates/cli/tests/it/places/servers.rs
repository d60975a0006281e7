//! A container engine and an ssh server of a test's own, gone with it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, getuid, kill_process};
use tapdeck_needs::{find, skip};

use crate::support::{PATIENCE, descends, eventually};

/// The image that the tests run.
pub const IMAGE: &str = "tapdeck-test";

/// A server that goes when this process does, even by a signal.
fn serve(mut command: Command, log: &Path) -> Child {
    let log = std::fs::File::create(log).expect("a log");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a copy")).stderr(log);
    // SAFETY: one async-signal-safe system call.
    #[expect(unsafe_code, reason = "the standard library has no safe way to tie a child to its parent")]
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
            Ok(())
        });
    }
    command.spawn().expect("the server starts")
}

fn end(child: &mut Child) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
    let _ = kill_process(pid, Signal::TERM);
    let _ = child.wait();
}

fn done(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A free port.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

/// A container engine with one image.
pub struct Engine {
    folder: tempfile::TempDir,
    child: Child,
    port: u16,
}

/// Which engine.
#[derive(Debug, Clone, Copy)]
pub enum Make {
    Docker,
    Podman,
}

/// What Podman has to know where little is allowed: whose limits to keep, and a runtime that takes
/// control groups of either kind.
const PODMAN: &str = "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\n\
    [containers]\nnetns = \"host\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";

impl Make {
    fn command(self, at: &dyn Fn(&str) -> PathBuf, port: u16) -> Option<Command> {
        let socket = format!("unix://{}", at("docker.sock").display());
        let mut command = match self {
            Make::Docker => Command::new(find("dockerd")?),
            Make::Podman => Command::new(find("podman")?),
        };
        match self {
            Make::Docker => {
                command.arg("--data-root").arg(at("data")).arg("--exec-root").arg(at("exec"));
                command.arg("--pidfile").arg(at("pid")).arg("-H").arg(socket);
                command.args(["--bridge=none", "--iptables=false", "--ip6tables=false"]);
                command.args(["--ip-forward=false", "--ip-masq=false"]);
                make_certificates(at);
                command.arg("-H").arg(format!("tcp://127.0.0.1:{port}")).arg("--tlsverify");
                command.arg("--tlscacert").arg(at("ca.pem"));
                command.arg("--tlscert").arg(at("cert.pem")).arg("--tlskey").arg(at("key.pem"));
            }
            Make::Podman => {
                std::fs::write(at("containers.conf"), PODMAN).expect("written");
                command.env("CONTAINERS_CONF", at("containers.conf")).env("TMPDIR", at(""));
                command.arg("--root").arg(at("data")).arg("--runroot").arg(at("run"));
                command.arg("--tmpdir").arg(at("tmp"));
                command.args(["--storage-driver", "vfs", "system", "service", "--time", "0"]).arg(socket);
            }
        }
        Some(command)
    }
}

/// A signer of certificates, and one that serves for both sides, where docker looks for them.
fn make_certificates(at: &dyn Fn(&str) -> PathBuf) {
    let key = || rcgen::KeyPair::generate().expect("a key");
    let mut signer = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    signer.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signing = key();
    let ca = signer.self_signed(&signing).expect("signed");
    let issuer = rcgen::Issuer::new(signer, signing);
    let (own, names) = (key(), vec!["127.0.0.1".to_owned()]);
    let mut params = rcgen::CertificateParams::new(names).expect("a name");
    params.extended_key_usages =
        vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth, rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&own, &issuer).expect("signed");
    for (name, text) in
        [("ca.pem", ca.pem()), ("cert.pem", certificate.pem()), ("key.pem", own.serialize_pem())]
    {
        std::fs::write(at(name), text).expect("written");
    }
}

impl Engine {
    /// Starts one, where that is possible.
    pub fn start(make: Make) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let port = free_port();
        let (Some(command), Some(busybox)) = (make.command(&at, port), find("busybox")) else {
            skip(&format!("{make:?} or busybox is not installed"));
            return None;
        };
        if !getuid().is_root() {
            skip("a container engine needs root");
            return None;
        }
        let child = serve(command, &at("log"));
        let mut engine = Self { folder, child, port };
        let mut over = false;
        eventually("the engine", || {
            over = engine.child.try_wait().expect("a child").is_some();
            over || engine.call("GET", "/_ping", &[]).is_ok_and(|a| a.contains("200 OK"))
        });
        if over {
            let log = std::fs::read_to_string(engine.at("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or_default();
            skip(&format!("{make:?} does not start: {last}"));
            return None;
        }
        engine.import(&busybox);
        Some(engine)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its address.
    pub fn host(&self) -> String {
        format!("unix://{}", self.at("docker.sock").display())
    }

    /// How it is reached through TLS, if it is Docker's.
    pub fn behind_tls(&self) -> Vec<(String, String)> {
        let certificates = self.folder.path().display().to_string();
        let host = format!("tcp://127.0.0.1:{}", self.port);
        let all =
            [("DOCKER_HOST", host), ("DOCKER_TLS_VERIFY", "1".into()), ("DOCKER_CERT_PATH", certificates)];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// An image of one static program that is many.
    fn import(&self, busybox: &Path) {
        let root = self.at("root");
        for folder in ["bin", "tmp", "etc"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        std::fs::copy(busybox, root.join("bin/busybox")).expect("copied");
        done(Command::new("chroot").arg(&root).args(["/bin/busybox", "--install", "-s", "/bin"]));
        done(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(self.at("image.tar")).arg("."));
        let image = std::fs::read(self.at("image.tar")).expect("an image");
        let path = format!("/images/create?fromSrc=-&repo={IMAGE}&tag=latest");
        let answer = self.call("POST", &path, &image).expect("it takes the image");
        assert!(answer.contains("200 OK"), "{answer}");
    }

    fn call(&self, method: &str, path: &str, body: &[u8]) -> std::io::Result<String> {
        let mut socket = UnixStream::connect(self.at("docker.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: d\r\nConnection: close\r\nContent-Type: application/x-tar\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes())?;
        socket.write_all(body)?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Waits until there are this many containers, and returns their ids.
    #[track_caller]
    pub fn wait_for_containers(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        eventually("the containers", || {
            let answer = self.call("GET", "/containers/json?all=1", &[]).expect("an answer");
            // Ids are the only values of that name.
            let found = answer.split("\"Id\":\"").skip(1).filter_map(|rest| rest.split('"').next());
            ids = found.map(str::to_owned).collect();
            ids.len() == count
        });
        ids
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        end(&mut self.child);
        // Podman's monitors stay for minutes, in case a client asks how a program ended.
        let folder = self.folder.path().display().to_string();
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        for pid in all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()) {
            let started = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if started.contains("conmon") && started.contains(&folder) {
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            }
        }
    }
}

/// The password for a user without a key.
pub const PASSWORD: &str = "far too short";

fn tell(command: &mut Command, text: &str) {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is told");
    assert!(child.wait().expect("it ends").success(), "{command:?}");
}

/// An agent that knows one key.
pub struct Agent {
    child: Child,
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Agent {
    pub fn start(key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("agent");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket);
        let child = serve(command, &folder.path().join("log"));
        eventually("the agent", || UnixStream::connect(&socket).is_ok());
        done(Command::new("ssh-add").arg(key).env("SSH_AUTH_SOCK", &socket));
        Self { child, socket, _folder: folder }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// An ssh server on the loopback with an ordinary user: signals are not passed on to root.
pub struct Sshd {
    folder: tempfile::TempDir,
    child: Child,
    port: u16,
    user: String,
    made_user: bool,
}

impl Sshd {
    /// Starts one, where that is possible.
    pub fn start() -> Option<Self> {
        let (Some(sshd), Some(_)) = (find("sshd"), find("ssh-keygen")) else {
            skip("sshd or ssh-keygen is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for (name, passphrase) in [("host", ""), ("user", ""), ("locked", "open sesame")] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", passphrase, "-f"]).arg(at(name));
            done(&mut keygen);
        }
        let keys = ["user.pub", "locked.pub"].map(|name| std::fs::read_to_string(at(name)).expect("a key"));
        std::fs::write(at("authorized"), keys.concat()).expect("written");
        let made_user = getuid().is_root();
        let user = if made_user {
            use std::os::unix::fs::PermissionsExt;
            // The user must be able to get at the list of keys.
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(folder.path(), open).expect("opened");
            std::fs::create_dir_all("/run/sshd").expect("a folder");
            let user = format!("tapdeck{}", std::process::id());
            done(Command::new("useradd").args(["-M", "-d", "/tmp", "-s", "/bin/sh", &user]));
            // An account without any password counts as locked.
            tell(&mut Command::new("chpasswd"), &format!("{user}:{PASSWORD}"));
            user
        } else {
            std::env::var("USER").ok()?
        };
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nPidFile {0}/pid\nAuthorizedKeysFile {0}/authorized\n\
             StrictModes no\nUsePAM no\nPrintMotd no\nPrintLastLog no\n",
            folder.path().display()
        );
        std::fs::write(at("config"), config).expect("written");
        let mut command = Command::new(sshd);
        command.arg("-D").arg("-e").arg("-f").arg(at("config"));
        let child = serve(command, &at("log"));
        let mut server = Self { folder, child, port, user, made_user };
        eventually("the server", || {
            let over = server.child.try_wait().expect("a child").is_some();
            assert!(
                !over,
                "sshd: {}",
                std::fs::read_to_string(server.folder.path().join("log")).unwrap_or_default()
            );
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the user has the password that the tests know.
    pub fn has_password(&self) -> bool {
        self.made_user
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    /// The file of a private key.
    pub fn key(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        let root = self.child.id().cast_signed();
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let ours = pids.filter(|&pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            pid != root && name.starts_with("sshd") && descends(pid, root)
        });
        // All are found before the first is killed: a child whose parent is gone has no ancestor
        // here.
        for pid in ours.collect::<Vec<_>>() {
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.cut();
        end(&mut self.child);
        if self.made_user {
            let mut userdel = Command::new("userdel");
            let _ = userdel.arg("-f").arg(&self.user).stderr(Stdio::null()).status();
        }
    }
}
