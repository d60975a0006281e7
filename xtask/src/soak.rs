//! A long run: a recorded session, a server and the page under mixed use for as long as asked.
//! Their memory, descriptors and threads are sampled, and must be flat.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How much more memory the last quarter may take than the second, in KiB: the larger of a share
/// and a sum.
const GROWTH: f64 = 0.1;
const GROWTH_KIB: u64 = 4 << 10;
/// How many descriptors and threads may come and go with the clients of the moment.
const SLACK: u64 = 4;
const SAMPLES: u32 = 240;
/// At most one round in this time.
const ROUND: Duration = Duration::from_secs(1);

/// What the session's program does: colors, cursor movements, an alternate screen now and then, and
/// bursts.
const WORK: &str = r#"
n=0
while :; do
    n=$((n + 1))
    printf '\033[3%dmround %d\033[m: %s\r\n' $((n % 8)) "$n" 'the quick brown fox jumps over the lazy dog'
    if [ $((n % 50)) = 0 ]; then
        printf '\033[?1049h\033[2J\033[5;10Hfull screen %d' "$n"; sleep 0.1; printf '\033[?1049l'
    fi
    [ $((n % 200)) = 0 ] && seq 20000
    sleep 0.02
done
"#;

/// Runs for so many minutes.
pub(crate) fn run(minutes: &str) -> Result<()> {
    let minutes: f64 = minutes.parse().context("usage: cargo xtask soak [MINUTES]")?;
    let tapdeck = binary()?;
    let home = std::env::temp_dir().join(format!("tapdeck-soak-{}", std::process::id()));
    fs::create_dir_all(home.join("run"))?;
    private(&home.join("run"))?;
    let deck = Deck { tapdeck, home };
    let ended = deck.soak(Duration::from_secs_f64(minutes * 60.0));
    // A session that a failed run left. Its host may still write while its home is removed.
    let _ = deck.command(&["kill", "work"]).status();
    let _ = deck.command(&["wait", "work", "--exit"]).status();
    let _ = fs::remove_dir_all(&deck.home);
    ended
}

/// The command to soak: `TAPDECK` names it, or it is built.
fn binary() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("TAPDECK") {
        return Ok(given.into());
    }
    crate::succeed(Command::new("cargo").args(["build", "--release", "-p", "tapdeck-cli"]))?;
    Ok(crate::root()?.join("target/release/tapdeck"))
}

fn private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?)
}

/// The command, with a home of its own.
struct Deck {
    tapdeck: PathBuf,
    home: PathBuf,
}

/// A process that is killed when it is no longer needed.
struct Server {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Deck {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.tapdeck);
        command.args(args).env_clear().env("HOME", &self.home).env("TERM", "xterm-256color");
        command.env("XDG_RUNTIME_DIR", self.home.join("run")).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.current_dir(&self.home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a command that must succeed. Returns what it prints.
    fn ask(&self, args: &[&str]) -> Result<String> {
        let output = self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tapdeck {}: {}\n{said}", args.join(" "), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn start(&self, args: &[&str]) -> Result<Server> {
        let mut child = self.command(args).stdout(Stdio::piped()).spawn()?;
        let says = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Server { child, says })
    }

    /// The process number of the session's host.
    fn host(&self) -> Result<u32> {
        let mut entries = fs::read_dir(self.home.join("run/tapdeck"))?.flatten().map(|e| e.path());
        let entry = entries.find(|e| e.extension().is_some_and(|e| e == "json")).context("no session")?;
        let entry: serde_json::Value = serde_json::from_slice(&fs::read(entry)?)?;
        Ok(entry["pid"].as_u64().context("the host has no number")?.try_into()?)
    }

    fn soak(&self, time: Duration) -> Result<()> {
        fs::write(self.home.join("work.sh"), WORK)?;
        self.ask(&["rec", "-d", "--name", "work", "work.ahr", "--", "sh", "work.sh"])?;
        let host = self.host()?;
        let token = self.home.join("token");
        self.ask(&["serve", "token", "add", "-o", &token.display().to_string()])?;
        let mut server = self.start(&["serve", "--listen", "tls://127.0.0.1:0"])?;
        let (mut fingerprint, mut address) = (String::new(), String::new());
        while address.is_empty() {
            let mut line = String::new();
            ensure!(server.says.read_line(&mut line)? > 0, "the server does not start");
            match line.trim().split_once(' ') {
                Some(("fingerprint", value)) => fingerprint = value.to_owned(),
                Some(("listening", value)) => address = value.to_owned(),
                _ => {}
            }
        }
        let mut web = self.start(&["web", "--recordings", "."])?;
        let mut link = String::new();
        web.says.read_line(&mut link)?;
        let page = link.trim().strip_prefix("http://").and_then(|l| l.split_once("/#token="));
        let (page, secret) = page.with_context(|| format!("no link: {link:?}"))?;

        let watched = [("session", host), ("server", server.child.id()), ("page", web.child.id())];
        let mut samples: Vec<[Sample; 3]> = Vec::new();
        let (began, every) = (Instant::now(), time / SAMPLES);
        let (mut rounds, mut files) = (0u64, 0);
        while began.elapsed() < time {
            self.use_all(&address, &fingerprint, &token, page, secret, rounds)?;
            rounds += 1;
            let next = began + ROUND * u32::try_from(rounds)?;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if began.elapsed() >= every * u32::try_from(samples.len())? {
                let taken: Result<Vec<Sample>> = watched.iter().map(|(_, pid)| Sample::of(*pid)).collect();
                samples.push(taken?.try_into().map_err(|_| anyhow::anyhow!("three samples"))?);
                files = fs::metadata(self.home.join("work.ahr"))?.len();
            }
        }
        println!("{rounds} rounds in {} s; the recording has {files} bytes", began.elapsed().as_secs());
        self.ask(&["kill", "work"])?;
        self.ask(&["verify", "work.ahr"])?;
        report(&watched.map(|(name, _)| name), &samples)
    }

    /// One round: every kind of use once.
    fn use_all(
        &self,
        address: &str,
        fingerprint: &str,
        token: &Path,
        page: &str,
        secret: &str,
        round: u64,
    ) -> Result<()> {
        self.ask(&["peek", "work"])?;
        self.ask(&["explain", "work"])?;
        self.ask(&["resize", "work", if round.is_multiple_of(2) { "100x30" } else { "80x24" }])?;
        self.ask(&["send", "work", "Enter"])?;
        self.ask(&["wait", "work", "--text", "round", "--timeout", "60s"])?;
        self.ask(&["turns", "work", "--json"])?;
        // A terminal that watches for a moment and is then gone.
        let attach = format!("timeout 0.5 '{}' attach --read-only work", self.tapdeck.display());
        let watch = self.command(&[]);
        let mut script = Command::new("script");
        script.args(["-qec", &attach, "/dev/null"]).env_clear().current_dir(&self.home);
        script.envs(watch.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let token = token.display().to_string();
        let said = self.ask(&[
            "connect",
            address,
            "--fingerprint",
            fingerprint,
            "--token-file",
            &token,
            "--",
            "seq",
            "2000",
        ])?;
        ensure!(said.lines().count() == 2000, "connect lost output");
        // A stranger with nonsense, and one that says nothing.
        let door = address.trim_start_matches("tls://");
        TcpStream::connect(door)?.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
        drop(TcpStream::connect(door)?);
        ensure!(http(page, "GET / HTTP/1.1\r\n", "")?.contains("200 OK"), "the page is gone");
        let login = format!("{{\"token\":\"{secret}\"}}");
        let post = format!(
            "POST /login HTTP/1.1\r\nOrigin: http://{page}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            login.len()
        );
        ensure!(http(page, &post, &login)?.contains("200 OK"), "the page lets its owner in no more");
        Ok(())
    }
}

fn http(page: &str, head: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(page)?;
    write!(stream, "{head}Host: {page}\r\nConnection: close\r\n\r\n{body}")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What a process has at a moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    memory_kib: u64,
    descriptors: u64,
    threads: u64,
}

impl Sample {
    fn of(pid: u32) -> Result<Self> {
        let place = PathBuf::from(format!("/proc/{pid}"));
        let status = fs::read_to_string(place.join("status")).with_context(|| format!("{pid} has ended"))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Ok(Self {
            memory_kib: number("VmRSS:").context("VmRSS")?,
            descriptors: fs::read_dir(place.join("fd"))?.count() as u64,
            threads: number("Threads:").context("Threads")?,
        })
    }

    fn numbers(self) -> [u64; 3] {
        [self.memory_kib, self.descriptors, self.threads]
    }
}

/// Prints a line for each process and number, and fails for one that grows.
fn report(names: &[&str; 3], samples: &[[Sample; 3]]) -> Result<()> {
    ensure!(samples.len() >= 8, "too short to tell: {} samples", samples.len());
    let quarter = samples.len() / 4;
    let mut grows = String::new();
    println!("process  number       2nd quarter  last quarter        max");
    for (n, name) in names.iter().enumerate() {
        for (what, number) in ["memory KiB", "descriptors", "threads"].iter().enumerate() {
            let series: Vec<u64> = samples.iter().map(|s| s[n].numbers()[what]).collect();
            let early = median(&series[quarter..2 * quarter]);
            let late = median(&series[series.len() - quarter..]);
            let max = series.iter().max().copied().unwrap_or_default();
            println!("{name:8} {number:11} {early:12} {late:13} {max:10}  {}", plot(&series));
            let allowed = if what == 0 { GROWTH_KIB.max((early as f64 * GROWTH) as u64) } else { SLACK };
            if late > early + allowed {
                writeln!(grows, "{name}: {number} grew from {early} to {late}")?;
            }
        }
    }
    if !grows.is_empty() {
        bail!("not flat:\n{grows}");
    }
    Ok(())
}

fn median(series: &[u64]) -> u64 {
    let mut sorted = series.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Draws a series in a line of 40 characters, from zero to its largest number.
fn plot(series: &[u64]) -> String {
    let max = series.iter().max().copied().unwrap_or_default().max(1);
    let bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let parts = series.chunks(series.len().div_ceil(40).max(1));
    parts.map(|part| bars[(median(part) * 7 / max) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(memory_kib: impl Fn(u64) -> u64) -> Vec<[Sample; 3]> {
        (0..40).map(|n| [Sample { memory_kib: memory_kib(n), descriptors: 9, threads: 4 }; 3]).collect()
    }

    #[test]
    fn what_grows_is_told() {
        let names = ["a", "b", "c"];
        report(&names, &samples(|n| 20_000 + n % 7)).expect("flat");
        let grown = report(&names, &samples(|n| 20_000 + 500 * n)).expect_err("it grows");
        assert!(grown.to_string().contains("a: memory KiB grew from"), "{grown}");
    }
}
