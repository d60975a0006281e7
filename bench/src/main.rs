//! Measures passing through and recording against the peers, and recordings on disk against the
//! model alone, side by side in one run.
//!
//! `cargo run --release -p tapdeck-bench` prints a table and, with `--json FILE`, writes the same
//! as data. Every figure is a median over interleaved rounds on this machine; what counts is the
//! ratio to the minimal relay (this program's own `relay`, two ptys and a poll loop), not the
//! absolute number. Peers that are not installed are listed as skipped. `--beside FILE` measures
//! another build of Tapdeck in the same run. `--only 'tapdeck rec,sync none,sync block'` compares
//! the levels of syncing, and `encrypted` is a recording with `--encrypt`.

mod films;
mod golden;
mod pace;
mod page;
mod peers;
mod pty;
mod relay;
mod sharing;
mod tapes;
#[allow(dead_code, reason = "tests use all of it")]
#[path = "../../crates/cli/tests/it/webdriver.rs"]
mod webdriver;
mod wire;
mod workload;

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::json;

use peers::Peer;

/// What to measure, and how often.
struct Options {
    mb: usize,
    rounds: usize,
    json: Option<PathBuf>,
    only: Vec<String>,
    parts: Vec<String>,
    /// Keep a core busy meanwhile.
    load: bool,
    /// Another build of Tapdeck, measured beside this one.
    beside: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|a| a == "relay") {
        let command = args.get(1..).filter(|c| !c.is_empty()).context("usage: relay CMD ARGS…")?;
        return relay::run(command);
    }
    match args.first().and_then(|a| a.to_str()) {
        Some("drip") => return pace::drip(args.get(1).context("usage: drip FILE")?.as_ref()),
        Some("tick") => return pace::tick(),
        _ => {}
    }
    let options = parse(args.into_iter().map(|a| a.to_string_lossy().into_owned()))?;
    let folder = std::env::temp_dir().join(format!("tapdeck-bench-{}", std::process::id()));
    // Sockets are only made in a folder that no other user can enter.
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let result = measure(&options, &folder);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn parse(args: impl Iterator<Item = String>) -> Result<Options> {
    let mut o = Options {
        mb: 200,
        rounds: 7,
        json: None,
        only: Vec::new(),
        parts: Vec::new(),
        load: false,
        beside: None,
    };
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--mb" => o.mb = value()?.parse()?,
            "--rounds" => o.rounds = value()?.parse()?,
            "--json" => o.json = Some(value()?.into()),
            "--only" => o.only = value()?.split(',').map(Into::into).collect(),
            "--parts" => o.parts = value()?.split(',').map(Into::into).collect(),
            "--load" => o.load = true,
            "--beside" => o.beside = Some(value()?.into()),
            _ => bail!(
                "usage: tapdeck-bench [--mb N] [--rounds N] [--json FILE] [--only PEER,…] \
                 [--parts plain,agent,latency,startup,pace,tapes,sharing,wire,page,films,tests] [--load] [--beside TAPDECK]"
            ),
        }
    }
    Ok(o)
}

fn measure(o: &Options, folder: &std::path::Path) -> Result<()> {
    let (mut peers, mut skipped) = peers::installed(o.beside.as_deref())?;
    // Other ways to record are measured only when asked for.
    let special = ["sync none", "sync block", "encrypted"];
    let usual = |p: &Peer| o.only.is_empty() && !special.contains(&p.name);
    peers.retain(|p| usual(p) || o.only.iter().any(|n| n == p.name) || p.name == "relay");
    let wants = |part: &str| o.parts.is_empty() || o.parts.iter().any(|p| p == part);
    let _busy = o.load.then(workload::Busy::start);
    let mut data = BTreeMap::new();
    for kind in ["plain", "agent"] {
        if wants(kind) {
            let file = folder.join(kind);
            workload::write(kind, o.mb << 20, &file)?;
            let rows = throughput(&peers, &file, o, folder)?;
            table(&format!("{kind}: {} MB through a terminal", o.mb), &rows);
            data.insert(format!("throughput_{kind}"), rows);
            std::fs::remove_file(&file)?;
        }
    }
    if wants("latency") {
        let rows = latency(&peers, o, folder)?;
        table("echo of one byte, µs", &rows);
        data.insert("latency_us".into(), rows);
    }
    if wants("startup") {
        let rows = startup(&peers, o, folder)?;
        table("start-up of `true`, ms", &rows);
        data.insert("startup_ms".into(), rows);
    }
    if wants("pace") {
        let file = folder.join("agent");
        workload::write("agent", 8 << 20, &file)?;
        let rows = pace::steady(&peers, &file, o, folder)?;
        table("1 MB/s, in percent of a core, the program included and without it", &rows);
        data.insert("steady_percent".into(), rows);
        std::fs::remove_file(&file)?;
        let rows = pace::killed(o, folder)?;
        table("what was shown and is not in the recording after kill -9", &rows);
        data.insert("killed_ms".into(), rows);
    }
    if wants("tapes") {
        for kind in ["plain", "agent"] {
            let file = folder.join(kind);
            workload::write(kind, o.mb << 20, &file)?;
            let rows = tapes::measure(&file, o, folder)?;
            table(&format!("{kind}: a recording of {} MB; seek is one jump, index present", o.mb), &rows);
            data.insert(format!("tapes_{kind}"), rows);
            std::fs::remove_file(&file)?;
        }
    }
    if wants("sharing") {
        let file = folder.join("plain");
        workload::write("plain", o.mb << 20, &file)?;
        let rows = sharing::measure(&file, o, folder)?;
        table(
            &format!("{} MB from a live session; of 100 who watch 10 never read and 10 read 1 KB/s", o.mb),
            &rows,
        );
        data.insert("sharing".into(), rows);
        std::fs::remove_file(&file)?;
    }
    if wants("wire") {
        let file = folder.join("plain");
        workload::write("plain", o.mb << 20, &file)?;
        match wire::measure(&file, o, folder)? {
            Some(rows) => {
                table(&format!("{} MB from a program at a server on this machine, and echo", o.mb), &rows);
                data.insert("wire".into(), rows);
            }
            None => skipped.push("sshd"),
        }
        std::fs::remove_file(&file)?;
    }
    if wants("page") {
        match page::measure(&peers::tapdeck()?, o, folder)? {
            Some((keys, flood)) => {
                table(
                    "a key typed in the page until its letter is painted, ms, and in frames of 60 Hz",
                    &keys,
                );
                table("time between two pictures of the tab, ms, while it shows 100 MB of output", &flood);
                data.insert("page_key_ms".into(), keys);
                data.insert("page_gap_ms".into(), flood);
            }
            None => skipped.push("chromium"),
        }
    }
    if wants("films") {
        let rows = films::measure(&peers::tapdeck()?, o, folder)?;
        table("films at 126x43: a list of processes for a minute, and 11 s of true colour", &rows);
        data.insert("films".into(), rows);
    }
    if wants("tests") {
        let rows = golden::measure(&peers::tapdeck()?, o, folder)?;
        table("thirty claims about a cassette of ten seconds, 200 pictures, collapsed", &rows);
        data.insert("tests_ms".into(), rows);
    }
    println!(
        "skipped, not installed: {}",
        if skipped.is_empty() { "none".into() } else { skipped.join(", ") }
    );
    if let Some(path) = &o.json {
        let data: BTreeMap<_, _> = data.iter().map(|(k, rows)| (k, rows_json(rows))).collect();
        let all =
            json!({"mb": o.mb, "rounds": o.rounds, "loaded": o.load, "skipped": skipped, "results": data});
        std::fs::write(path, serde_json::to_vec_pretty(&all)?)?;
    }
    Ok(())
}

/// Figures of one peer, by column.
type Row = (&'static str, Vec<(&'static str, f64)>);

fn throughput(
    peers: &[Peer],
    file: &std::path::Path,
    o: &Options,
    folder: &std::path::Path,
) -> Result<Vec<Row>> {
    let size = std::fs::metadata(file)?.len() as f64;
    let mut runs: Vec<Vec<[f64; 4]>> = vec![Vec::new(); peers.len()];
    for _ in 0..o.rounds {
        for (peer, runs) in peers.iter().zip(&mut runs) {
            let out = folder.join("out");
            let command = peer.command(&["cat".into(), file.into()], &out);
            let run = pty::run_to_end(&command)?;
            let disk = peers::take_size(&out);
            runs.push([run.wall, run.cpu, run.max_rss_kb / 1024.0, disk]);
        }
    }
    let relay = median(runs_of(&runs, peers, "relay").iter().map(|r| r[0]));
    Ok(peers
        .iter()
        .zip(&runs)
        .map(|(peer, runs)| {
            let m = |i: usize| median(runs.iter().map(|r| r[i]));
            let mut row = vec![
                ("seconds", m(0)),
                ("MB/s", size / 1e6 / m(0)),
                ("x relay", m(0) / relay),
                ("cpu s", m(1)),
                ("rss MB", m(2)),
                ("disk MB", m(3) / 1e6),
            ];
            row.extend([("min s", runs.iter().map(|r| r[0]).fold(f64::MAX, f64::min))]);
            (peer.name, row)
        })
        .collect())
}

fn runs_of<'a>(runs: &'a [Vec<[f64; 4]>], peers: &[Peer], name: &str) -> &'a [[f64; 4]] {
    peers.iter().position(|p| p.name == name).map_or(&[], |i| &runs[i])
}

fn latency(peers: &[Peer], o: &Options, folder: &std::path::Path) -> Result<Vec<Row>> {
    const ROUND_TRIPS: usize = 2000;
    // Once more with ten who watch, at a socket that is known.
    let watched = peers.iter().find(|p| p.name == "tapdeck rec");
    let names: Vec<_> = peers.iter().map(|p| p.name).chain(watched.map(|_| "rec, 10 watch")).collect();
    let mut all: Vec<Vec<[f64; 2]>> = vec![Vec::new(); names.len()];
    for _ in 0..o.rounds {
        for (i, (peer, all)) in peers.iter().chain(watched).zip(&mut all).enumerate() {
            let out = folder.join("out");
            let echo = ["sh".into(), "-c".into(), "stty raw -echo; printf READY; exec cat".into()];
            let mut command = peer.command(&echo, &out);
            let mut times = if i < peers.len() {
                pty::echo_times(&command, ROUND_TRIPS, || Ok(()))?
            } else {
                let socket = folder.join("bus");
                command.splice(2..2, ["--bus".into(), format!("unix:{}", socket.display()).into()]);
                pty::echo_times(&command, ROUND_TRIPS, || sharing::Watchers::start(&socket, 10, 0))?
            };
            peers::take_size(&out);
            times.sort_by(f64::total_cmp);
            all.push([times[times.len() / 2], times[times.len() * 99 / 100]]);
        }
    }
    let relay = peers.iter().position(|p| p.name == "relay").map_or(&[][..], |i| &all[i]);
    let base = [0, 1].map(|i| median(relay.iter().map(|t| t[i])));
    Ok(names
        .into_iter()
        .zip(&all)
        .map(|(name, all)| {
            let m = |i: usize| median(all.iter().map(|t| t[i]));
            (
                name,
                vec![
                    ("p50", m(0)),
                    ("p99", m(1)),
                    ("p50 x relay", m(0) / base[0]),
                    ("p99 x relay", m(1) / base[1]),
                ],
            )
        })
        .collect())
}

fn startup(peers: &[Peer], o: &Options, folder: &std::path::Path) -> Result<Vec<Row>> {
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    for _ in 0..o.rounds * 5 {
        for (peer, all) in peers.iter().zip(&mut all) {
            let out = folder.join("out");
            all.push(pty::run_to_end(&peer.command(&["true".into()], &out))?.wall * 1e3);
            peers::take_size(&out);
        }
    }
    let base = |name: &str| peers.iter().position(|p| p.name == name).map(|i| median(all[i].iter().copied()));
    let script = base("script").or(base("relay")).unwrap_or(1.0);
    Ok(peers
        .iter()
        .zip(&all)
        .map(|(peer, all)| {
            let m = median(all.iter().copied());
            (peer.name, vec![("ms", m), ("x script", m / script)])
        })
        .collect())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn table(title: &str, rows: &[Row]) {
    println!("\n{title}");
    if let Some((_, first)) = rows.first() {
        println!("{:<14}{}", "", first.iter().map(|(c, _)| format!("{c:>12}")).collect::<String>());
    }
    for (name, row) in rows {
        let cell =
            |v: &f64| if v.is_nan() || *v < 0.0 { format!("{:>12}", "–") } else { format!("{v:>12.2}") };
        println!("{name:<14}{}", row.iter().map(|(_, v)| cell(v)).collect::<String>());
    }
    println!();
}

fn rows_json(rows: &[Row]) -> serde_json::Value {
    let row =
        |r: &[(&str, f64)]| json!(r.iter().map(|(c, v)| ((*c).to_owned(), *v)).collect::<BTreeMap<_, _>>());
    json!(rows.iter().map(|(name, r)| ((*name).to_owned(), row(r))).collect::<BTreeMap<_, _>>())
}
