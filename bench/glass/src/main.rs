//! The terminal model against its peers: speed on generated workloads, and memory for a million
//! rows.
//!
//! `bench-glass [MB] [ROUNDS] [--only NAME]` feeds each workload to each model in pieces of 64 KiB,
//! one thread, the models taking turns within each round, and prints medians as a table and as
//! JSON. `bench-glass memory` measures, each in a process of its own, what a million rows of 120
//! columns take.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod peers;
mod workloads;

use peers::{LIMITS, PEERS, Peer};
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("memory") => memory(),
        Some("memory-of") => memory_of(args.get(1).map_or("", String::as_str)),
        Some("write") => write_workloads(args.get(1).map_or(".", String::as_str)),
        _ => speed(&args),
    }
}

fn speed(args: &[String]) {
    let numbers: Vec<usize> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let bytes = numbers.first().copied().unwrap_or(16) << 20;
    let rounds = numbers.get(1).copied().unwrap_or(5);
    let only: Vec<&str> =
        args.iter().position(|a| a == "--only").map_or(vec![], |i| args[i + 1].split(',').collect());
    let peers: Vec<&Peer> =
        PEERS.iter().chain(LIMITS).filter(|p| only.is_empty() || only.contains(&p.0)).collect();
    let workloads = workloads::all(bytes);
    let mut times = vec![vec![Vec::new(); workloads.len()]; peers.len()];
    for _ in 0..rounds {
        for (w, (_, data)) in workloads.iter().enumerate() {
            for (p, (_, make)) in peers.iter().enumerate() {
                let mut model = make(10_000);
                let start = Instant::now();
                for piece in whole_pieces(data) {
                    model.feed(piece);
                }
                times[p][w].push(data.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
            }
        }
    }
    let medians: Vec<Vec<f64>> = times.into_iter().map(|m| m.into_iter().map(median).collect()).collect();
    print!("{:20}", "MB/s");
    workloads.iter().for_each(|(name, _)| print!("{name:>12}"));
    println!();
    for ((name, _), row) in peers.iter().zip(&medians) {
        print!("{name:20}");
        row.iter().for_each(|v| print!("{v:>12.0}"));
        println!();
    }
    let best: Vec<f64> = (0..workloads.len())
        .map(|w| medians[1..].iter().take(PEERS.len() - 1).map(|m| m[w]).fold(0.0, f64::max))
        .collect();
    print!("{:20}", "ours / best peer");
    medians[0].iter().zip(&best).for_each(|(a, b)| print!("{:>12.2}", a / b));
    println!();
    let json: Vec<String> = peers
        .iter()
        .zip(&medians)
        .map(|((name, _), row)| {
            let cells: Vec<String> = workloads
                .iter()
                .zip(row)
                .map(|((w, _), v)| format!("{:?}:{v:.1}", w.replace('\\', "")))
                .collect();
            format!("{name:?}:{{{}}}", cells.join(","))
        })
        .collect();
    println!("{{\"megabytes\":{},\"rounds\":{rounds},\"mb_per_s\":{{{}}}}}", bytes >> 20, json.join(","));
}

/// Pieces of about 64 KiB that do not cut a character: not every peer can be given half of one.
fn whole_pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut n = rest.len().min(64 << 10);
        while n < rest.len() && rest[n] & 0xc0 == 0x80 {
            n += 1;
        }
        let (piece, after) = rest.split_at(n);
        rest = after;
        Some(piece)
    })
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

const MILLION: usize = 1_000_000;

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn memory() {
    println!("{:20}{:>12}", "a million rows", "MB");
    let me = std::env::current_exe().expect("the program's own path");
    for (name, _) in PEERS {
        let out = std::process::Command::new(&me).args(["memory-of", name]).output().expect("a run");
        println!("{name:20}{:>12}", String::from_utf8_lossy(&out.stdout).trim());
    }
}

fn memory_of(name: &str) {
    let Some((_, make)) = PEERS.iter().find(|(n, _)| *n == name) else { return };
    // Rows of 120 columns, filled to the end.
    let line = workloads::plain(64 << 20);
    let before = resident();
    let mut model = make(MILLION);
    let mut fed = 0;
    let mut row = Vec::new();
    for l in line.split(|b| *b == b'\n').cycle() {
        row.clear();
        row.extend_from_slice(l.strip_suffix(b"\r").unwrap_or(l));
        row.resize(workloads::COLS - 1, b'.');
        row.extend_from_slice(b"\r\n");
        model.feed(&row);
        fed += 1;
        if fed == MILLION + workloads::ROWS {
            break;
        }
    }
    println!("{}", (resident() - before) / 1_000_000);
}

fn write_workloads(dir: &str) {
    for (name, data) in workloads::all(16 << 20) {
        let file = format!("{dir}/{}.bin", name.replace(['\\', ' '], ""));
        std::fs::write(&file, data).expect("a file");
        println!("{file}");
    }
}
