//! What is promised to be on disk is there after a power cut, wherever it comes.
//!
//! Each scenario does real work in a real folder, while the disk module keeps a journal. From the
//! journal the simulator makes states that a power cut could have left, and the scenario judges
//! each. `TAPDECK_CUTS` sets how many, and `TAPDECK_SEED` replays a run; `cargo xtask crash` is the
//! long one.

#![expect(clippy::disallowed_methods, reason = "a worker is a process of its own, with its own home")]
#![expect(clippy::print_stdout, reason = "the count is what the test shows")]

mod disk;
mod files;
mod index;
mod recorder;
mod rng;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use disk::Disk;
use rng::Rng;
use tapdeck_host::disk::journal::{self, Op};

/// Says what is wrong with the state after a cut behind so many changes.
type Judge = Box<dyn Fn(&[Op], usize, &mut Rng) -> Result<(), String>>;

/// One run of a scenario.
struct Round<'a> {
    root: &'a Path,
    rng: &'a mut Rng,
    disk: Option<Disk>,
}

impl Round<'_> {
    /// What is there now was synced. What is done from here on is interrupted.
    fn begin(&mut self) {
        self.disk = Some(Disk::of(self.root).expect("a folder to begin with"));
        journal::start();
    }
}

/// A name, what is done, and the share of the cuts.
type Scenario = (&'static str, fn(&mut Round<'_>) -> Judge, usize);

const SCENARIOS: &[Scenario] = &[
    ("rec --sync none", recorder::never_synced, 2),
    ("rec --sync block", recorder::synced_by_block, 2),
    ("rec --sync interval", recorder::synced_by_interval, 2),
    ("instructions beside a recording", recorder::lines, 2),
    ("instructions in a recording", recorder::additions, 2),
    ("rec, other formats", recorder::foreign, 2),
    #[cfg(feature = "encrypt")]
    ("rec --encrypt", recorder::encrypted, 2),
    ("index", index::rebuilt, 1),
    ("repair, convert, scrub", files::rewritten, 2),
    ("sidecars of a replaced recording", files::forgotten, 1),
    ("cassette", files::cassette, 4),
    ("config", files::settings, 3),
    ("tokens", files::tokens, 3),
    ("keys of a server", files::keys, 2),
];

/// Broken promises that are told in full.
const TOLD: usize = 5;

/// What a worker counted in a scenario.
#[derive(Default, Clone, Copy)]
struct Count {
    cuts: usize,
    broken: usize,
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn promises_hold_after_power_cuts() {
    let cuts = setting("TAPDECK_CUTS").unwrap_or(3000);
    let seed = setting("TAPDECK_SEED").unwrap_or_else(|| {
        let mut bytes = [0; 4];
        let mut random = fs::File::open("/dev/urandom").expect("random numbers");
        std::io::Read::read_exact(&mut random, &mut bytes).expect("random numbers");
        u32::from_le_bytes(bytes).into()
    });
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64).min(cuts);
    let shm = Path::new("/dev/shm");
    let temp = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
    let temp = temp.expect("a folder");
    let children: Vec<_> = (0..workers)
        .map(|worker| {
            let home = temp.path().join(worker.to_string());
            fs::create_dir(&home).expect("a folder");
            let mut command = Command::new(std::env::current_exe().expect("this test"));
            command.args(["worker", "--exact", "--ignored", "--nocapture"]).stdout(Stdio::piped());
            command.env("TAPDECK_POWER_CUT_HOME", &home).env("HOME", &home);
            command
                .env("XDG_STATE_HOME", home.join("root/state"))
                .env("XDG_CONFIG_HOME", home.join("root/config"));
            command.env("TAPDECK_CUTS", (cuts / workers).to_string());
            command.env("TAPDECK_SEED", (seed + worker).to_string());
            command.spawn().expect("a worker")
        })
        .collect();
    let mut sums = vec![Count::default(); SCENARIOS.len()];
    let mut failed = false;
    for child in children {
        let output = child.wait_with_output().expect("a worker that ends");
        failed |= !output.status.success();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            match line.strip_prefix("count ") {
                Some(counts) => {
                    let counts: Vec<usize> = counts.split(' ').filter_map(|n| n.parse().ok()).collect();
                    sums[counts[0]].cuts += counts[1];
                    sums[counts[0]].broken += counts[2];
                }
                None => println!("{line}"),
            }
        }
    }
    for ((name, ..), count) in SCENARIOS.iter().zip(&sums) {
        println!("{:>7} cuts, {} broken promises: {name}", count.cuts, count.broken);
    }
    let (made, broken) = sums.iter().fold((0, 0), |(made, broken), c| (made + c.cuts, broken + c.broken));
    println!("{made} cuts, {broken} broken promises; seed {seed}");
    assert!(!failed && broken == 0, "replay with TAPDECK_SEED={seed} TAPDECK_CUTS={cuts}");
}

/// Does one worker's share. The test above starts it, in a process with a home of its own.
#[test]
#[ignore = "a part of promises_hold_after_power_cuts"]
fn worker() {
    let Some(home) = std::env::var_os("TAPDECK_POWER_CUT_HOME").map(PathBuf::from) else { return };
    let cuts = setting("TAPDECK_CUTS").unwrap_or(1) as usize;
    let seed = setting("TAPDECK_SEED").unwrap_or(0);
    let only = std::env::var("TAPDECK_SCENARIO").ok();
    let root = home.join("root");
    let shares: usize = SCENARIOS.iter().map(|(.., share)| share).sum();
    for (number, (name, scenario, share)) in SCENARIOS.iter().enumerate() {
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let cuts = (cuts * share).div_ceil(shares);
        let count = run(name, *scenario, cuts, seed, &root);
        println!("count {number} {} {}", count.cuts, count.broken);
    }
}

fn run(name: &str, scenario: fn(&mut Round<'_>) -> Judge, cuts: usize, seed: u64, root: &Path) -> Count {
    // Many rounds see many orders of events, but each takes longer than a cut.
    let a_round = (cuts / 20).clamp(100, 1000);
    let mut count = Count::default();
    let mut rng = Rng(seed);
    while count.cuts < cuts {
        clear(root);
        let mut round = Round { root, rng: &mut rng, disk: None };
        let judge = scenario(&mut round);
        let mut disk = round.disk.take().expect("a scenario that begins");
        let ops = journal::end();
        let mut places: Vec<usize> =
            (0..a_round.min(cuts - count.cuts)).map(|_| rng.below(ops.len() + 1)).collect();
        places.sort_unstable();
        let mut done = 0;
        for cut in places {
            while done < cut {
                disk.apply(done, &ops[done]);
                done += 1;
            }
            let again = Rng(rng.0);
            clear(root);
            disk.crash(&mut rng, root).expect("room for the state");
            count.cuts += 1;
            let Err(broken) = judge(&ops[..cut], cut, &mut rng) else { continue };
            count.broken += 1;
            if count.broken <= TOLD {
                tell(name, &broken, seed, &ops[..cut], &disk, again);
            }
        }
    }
    count
}

/// Says which promise was broken, and keeps the state that broke it.
fn tell(name: &str, broken: &str, seed: u64, ops: &[Op], disk: &Disk, mut rng: Rng) {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("power-cut-{seed}-{}", ops.len()));
    clear(&kept);
    disk.crash(&mut rng, &kept).expect("room for the state");
    println!("{name}, cut behind {} changes: {broken}\n  the state is kept in {}", ops.len(), kept.display());
    for (number, op) in ops.iter().enumerate().skip(ops.len().saturating_sub(12)) {
        let mut line = format!("{op:?}");
        line.truncate(160);
        println!("  {number}: {line}");
    }
}

fn clear(folder: &Path) {
    // There is none at first.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("a folder");
}
