//! Sessions at a server, over each transport, against `ssh -tt` to this machine: throughput and
//! echo.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{Options, Row, median, peers, pty};

const NAMES: [&str; 3] = ["unix", "tls", "quic"];

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.0),
            rustix::process::Signal::TERM,
        );
        let _ = self.0.wait();
    }
}

/// A server of ours in a home of its own.
struct Ours {
    tapdeck: PathBuf,
    home: PathBuf,
    addresses: Vec<String>,
    _server: Running,
}

impl Ours {
    fn start(folder: &Path) -> Result<Self> {
        let home = folder.join("home");
        DirBuilder::new().mode(0o700).create(&home)?;
        let tapdeck = peers::tapdeck()?;
        let token = File::create(home.join("token"))?;
        let mut add = at_home(&home, &tapdeck);
        ensure!(add.args(["serve", "token", "add", "--name", "bench"]).stdout(token).status()?.success());
        let mut serve = at_home(&home, &tapdeck);
        serve.args(["serve", "--listen", &format!("unix:{}", home.join("sock").display())]);
        serve.args(["--listen", "tls://127.0.0.1:0", "--listen", "quic://127.0.0.1:0"]);
        let mut server = Running(serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
        let lines = BufReader::new(server.0.stdout.take().context("its output")?).lines();
        let mut addresses = Vec::new();
        for line in lines {
            if let Some(address) = line?.strip_prefix("listening ") {
                addresses.push(address.to_owned());
            }
            if addresses.len() == NAMES.len() {
                break;
            }
        }
        ensure!(addresses.len() == NAMES.len(), "the server does not listen");
        Ok(Self { tapdeck, home, addresses, _server: server })
    }

    fn command(&self, address: &str, command: &[OsString]) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["env".into()];
        line.extend(homely(&self.home).map(|(k, v)| format!("{k}={}", v.display()).into()));
        line.extend([
            self.tapdeck.clone().into(),
            "connect".into(),
            "--accept-new".into(),
            "--token-file".into(),
        ]);
        line.extend([self.home.join("token").into(), address.into(), "--".into()]);
        line.extend_from_slice(command);
        line
    }
}

fn homely(home: &Path) -> impl Iterator<Item = (&'static str, &Path)> {
    ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
        .into_iter()
        .map(move |k| (k, home))
}

fn at_home(home: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.envs(homely(home));
    command
}

/// A server of OpenSSH's for the user that runs this.
struct Ssh {
    folder: PathBuf,
    port: u16,
    _server: Running,
}

impl Ssh {
    fn start(folder: &Path) -> Result<Option<Self>> {
        let sshd = Path::new("/usr/sbin/sshd");
        if !sshd.exists() {
            return Ok(None);
        }
        let folder = folder.join("ssh");
        DirBuilder::new().mode(0o700).create(&folder)?;
        for name in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(name));
            ensure!(keygen.status()?.success(), "no key");
        }
        std::fs::copy(folder.join("user.pub"), folder.join("authorized"))?;
        // Where sshd runs as root it wants this; elsewhere it cannot be made and is not needed.
        let _ = std::fs::create_dir_all("/run/sshd");
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nPidFile none\nAuthorizedKeysFile {0}/authorized\n\
             StrictModes no\nUsePAM no\nPrintMotd no\nPrintLastLog no\n",
            folder.display()
        );
        std::fs::write(folder.join("config"), config)?;
        let mut command = Command::new(sshd);
        command.args(["-D", "-e", "-f"]).arg(folder.join("config")).stderr(Stdio::null());
        let server = Running(command.spawn()?);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(start.elapsed() < Duration::from_secs(10), "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(Self { folder, port, _server: server }))
    }

    fn command(&self, command: &[OsString]) -> Vec<OsString> {
        let mut line: Vec<OsString> = ["ssh", "-tt", "-q", "-F", "none", "-p"].map(Into::into).into();
        line.extend([self.port.to_string().into(), "-i".into(), self.folder.join("user").into()]);
        for option in ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes"] {
            line.extend(["-o".into(), option.into()]);
        }
        line.extend(["127.0.0.1".into(), "--".into(), peers::quote(command)]);
        line
    }
}

/// Measures everything; nothing where there is no sshd to measure against.
pub fn measure(file: &Path, o: &Options, folder: &Path) -> Result<Option<Vec<Row>>> {
    const ROUND_TRIPS: usize = 1000;
    let Some(ssh) = Ssh::start(folder)? else { return Ok(None) };
    let ours = Ours::start(folder)?;
    // The last is no transport at all: what this machine's terminals carry.
    let names = ["ssh -tt"].into_iter().chain(NAMES).chain(["bare pty"]);
    let lines = |command: &[OsString]| -> Vec<Vec<OsString>> {
        let ours = ours.addresses.iter().map(|address| ours.command(address, command));
        [ssh.command(command)].into_iter().chain(ours).chain([command.to_vec()]).collect()
    };
    let cat = lines(&["cat".into(), file.into()]);
    let echo = lines(&["sh".into(), "-c".into(), "stty raw -echo; printf READY; exec cat".into()]);
    let mut all: Vec<Vec<[f64; 3]>> = vec![Vec::new(); cat.len()];
    for _ in 0..o.rounds {
        for (i, all) in all.iter_mut().enumerate() {
            let flood = pty::run_to_end(&cat[i])?.wall;
            let mut times = pty::echo_times(&echo[i], ROUND_TRIPS, || Ok(()))?;
            times.sort_by(f64::total_cmp);
            all.push([flood, times[times.len() / 2], times[times.len() * 99 / 100]]);
        }
    }
    let mb = std::fs::metadata(file)?.len() as f64 / 1e6;
    let m = |i: usize, k: usize| median(all[i].iter().map(|t| t[k]));
    let rows = names.enumerate().map(|(i, name)| {
        let columns = vec![
            ("MB/s", mb / m(i, 0)),
            ("x ssh", m(0, 0) / m(i, 0)),
            ("echo p50 µs", m(i, 1)),
            ("p50 x ssh", m(i, 1) / m(0, 1)),
            ("p99 x ssh", m(i, 2) / m(0, 2)),
        ];
        (name, columns)
    });
    Ok(Some(rows.collect()))
}
