//! Files and folders that are replaced: the old content or the new one is there, never half of one,
//! and the new one after success was reported.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tapdeck::convert::{Conversion, Digest, To};
use tapdeck::tape::cassette::Files;
use tapdeck::{OutFile, RecordOptions, Recording};
use tapdeck_core::WallTime;
use tapdeck_host::cassette::CassetteFolder;
use tapdeck_host::disk::{self, journal};
use tapdeck_host::{IfExists, Source, forget_sidecars};
use tapdeck_serve::net::Identity;
use tapdeck_serve::tokens::{Scope, Tokens};

use crate::recorder::Live;
use crate::{Judge, Round};

/// All files below a path, or the one file; `None` if there is nothing.
type Content = Option<BTreeMap<PathBuf, Vec<u8>>>;

fn content(path: &Path) -> Content {
    let mut files = BTreeMap::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).ok()?.flatten() {
            files.insert(entry.path(), fs::read(entry.path()).ok()?);
        }
    } else {
        files.insert(path.to_owned(), fs::read(path).ok()?);
    }
    Some(files)
}

/// The contents that a path had, each with the change from which on it was promised.
struct Steps {
    path: PathBuf,
    steps: Vec<(usize, Content)>,
}

impl Steps {
    fn begin(round: &mut Round<'_>, path: &Path) -> Self {
        let steps = vec![(0, content(path))];
        round.begin();
        Self { path: path.to_owned(), steps }
    }

    /// A change of the path was reported as done.
    fn done(&mut self) {
        self.steps.push((journal::len(), content(&self.path)));
    }

    fn check(&self, cut: usize) -> Result<(), String> {
        let last = self.steps.iter().rposition(|(from, _)| *from <= cut).unwrap_or(0);
        let found = content(&self.path);
        if self.steps.iter().skip(last).take(2).any(|(_, promised)| *promised == found) {
            return Ok(());
        }
        let what = match self.steps.iter().find(|(_, promised)| *promised == found) {
            Some(_) if found.is_none() => "gone".to_owned(),
            Some(_) => "an older one than was promised".to_owned(),
            None => format!("neither the old nor the new one: {:?}", found.map(lengths)),
        };
        Err(format!("{} is {what}", self.path.display()))
    }

    fn judge(self) -> Judge {
        Box::new(move |_, cut, _| self.check(cut))
    }
}

fn lengths(files: BTreeMap<PathBuf, Vec<u8>>) -> Vec<usize> {
    files.values().map(Vec::len).collect()
}

/// A file as `config init --overwrite` and others write it.
pub(crate) fn settings(round: &mut Round<'_>) -> Judge {
    let folder = round.root.join("config");
    let path = folder.join("config.toml");
    if round.rng.chance(2) {
        fs::create_dir(&folder).expect("a folder");
        fs::write(&path, round.rng.text(2000)).expect("written");
    }
    let mut steps = Steps::begin(round, &path);
    disk::create_folders(&folder).expect("a folder");
    for _ in 0..3 {
        let mut file = OutFile::create_shared(&path, true).expect("begun");
        for _ in 0..=round.rng.below(3) {
            file.write_all(&round.rng.text(2000)).expect("written");
        }
        file.commit().expect("in place");
        steps.done();
    }
    steps.judge()
}

pub(crate) fn tokens(round: &mut Round<'_>) -> Judge {
    let path = round.root.join("serve/tokens.json");
    let tokens = Tokens::at(path.clone());
    if round.rng.chance(2) {
        tokens.add(Some("old"), vec![Scope::Open], WallTime::from_nanos(5), None).expect("made");
    }
    let mut steps = Steps::begin(round, &path);
    for number in 0..4 {
        let name = format!("token {number}");
        tokens.add(Some(&name), vec![Scope::Observe], WallTime::from_nanos(5), None).expect("made");
        steps.done();
        if round.rng.chance(2) {
            tokens.remove(&name).expect("revoked");
            steps.done();
        }
    }
    Box::new(move |_, cut, _| {
        steps.check(cut)?;
        tokens.all().map(|_| ()).map_err(|e| e.to_string())
    })
}

/// The keys by which a server is known.
pub(crate) fn keys(round: &mut Round<'_>) -> Judge {
    let folder = round.root.join("serve");
    let mut identity = Steps::begin(round, &folder.join("key.pem"));
    Identity::own(&folder).expect("made");
    identity.done();
    let mut all = vec![identity];
    #[cfg(feature = "ssh")]
    {
        let path = folder.join("ssh_host_key");
        let mut steps = Steps { path: path.clone(), steps: vec![(0, None)] };
        tapdeck_serve::ssh_door::host_key(&path).expect("made");
        steps.done();
        all.push(steps);
    }
    Box::new(move |_, cut, _| all.iter().try_for_each(|steps| steps.check(cut)))
}

/// A cassette that is committed, as a folder or as an archive.
pub(crate) fn cassette(round: &mut Round<'_>) -> Judge {
    let some = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cassettes/synthetic/bell.cassette");
    let mut files = Files::read(&some).expect("a cassette");
    let name = if round.rng.chance(2) { "run.cassette" } else { "run.tar.zst" };
    let target = round.root.join("cassettes").join(name);
    let commit = |files: &Files| {
        let mut folder = CassetteFolder::create(&target, true).expect("begun");
        folder.append_all(files).expect("written");
        folder.commit().expect("in place");
    };
    if round.rng.chance(2) {
        commit(&files);
    }
    let mut steps = Steps::begin(round, &target);
    for _ in 0..2 {
        files.put("output.bin", round.rng.text(3000));
        commit(&files);
        steps.done();
    }
    steps.judge()
}

/// `repair`, `convert` and `scrub` with `--overwrite`, to a native recording and to another.
pub(crate) fn rewritten(round: &mut Round<'_>) -> Judge {
    let source = round.root.join("source.ahr");
    let old = round.root.join("target.ahr");
    for path in [&source, &old] {
        let live = Live::start(path, IfExists::Refuse, RecordOptions::default()).expect("a recorder");
        live.write(&round.rng.text(6000));
        live.finish();
    }
    let repairs = round.rng.chance(2);
    let target = if repairs || round.rng.chance(2) { old } else { round.root.join("target.cast") };
    if !target.exists() && round.rng.chance(2) {
        fs::write(&target, "{\"version\": 2, \"width\": 80, \"height\": 24}\n").expect("written");
    }
    let mut steps = Steps::begin(round, &target);
    if repairs {
        let source = Source::find(&source, None, None).expect("a recording");
        tapdeck::convert::repair(&source, &target, true).expect("repaired");
    } else {
        let to = To::of_path(&target).expect("a format");
        Conversion::new(&source, to).overwrite(true).write(&target).expect("converted");
    }
    steps.done();
    let complete = journal::len();
    Box::new(move |_, cut, _| {
        steps.check(cut)?;
        if !target.exists() {
            return Ok(());
        }
        let health = Recording::open(&target).and_then(|r| r.verify()).map_err(|e| e.to_string())?;
        let native = target.extension().is_some_and(|e| e == "ahr");
        match health.digest {
            Digest::Differs => Err("it has a digest of something else".into()),
            Digest::Unknown if native && cut >= complete => Err("it has no digest".into()),
            _ if !health.is_whole() => Err(format!("it is damaged: {:?}", health.problems)),
            _ => Ok(()),
        }
    })
}

/// Sidecars that spoke of a recording do not outlive it.
pub(crate) fn forgotten(round: &mut Round<'_>) -> Judge {
    let path = round.root.join("demo.ahr");
    let list = round.root.join("demo.snapshots.jsonl");
    fs::write(&path, "").expect("written");
    fs::write(&list, "{}\n").expect("written");
    let mut steps = Steps::begin(round, &list);
    forget_sidecars(&path).expect("removed");
    steps.done();
    steps.judge()
}
