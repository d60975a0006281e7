//! `tapdeck index`: keyframes in a recording, so that it opens at any moment at once.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde_json::{Value, json};
use tapdeck_host::{Addition, Blocks, ReadSeek, sidecar};
use tapdeck_tape::ahr::parts::INDEX;
use tapdeck_tape::index::{Index, IndexBuilder, IndexOptions, index_blocks};

use crate::ending::{Ending, Report, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::input::native;
use crate::keys::IdentityArgs;
use crate::progress::Progress;

/// Add an index to a recording, for fast seeking.
#[derive(Args)]
#[command(after_help = "\
Keeps a valid index, completes a partial one, and rebuilds one that is damaged or belongs to another
recording. The index is added to the recording itself. rec writes one while it records. An index is
optional: without one, seeking reads the recording from the start.

Examples:
  tapdeck index demo.ahr
  tapdeck play --at 1:23:45 demo.ahr")]
pub(crate) struct IndexArgs {
    /// The recordings
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Rebuild the index even if it is valid
    #[arg(long)]
    force: bool,
    /// Print nothing on success
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &IndexArgs) -> Result {
    let mut ending = Ending::Done;
    for path in &args.files {
        match index(path, args.force) {
            Ok(done) if args.json => print_json(&done.to_json(path)),
            Ok(done) if !args.quiet => done.say(),
            Ok(_) => {}
            Err(failure) => {
                let failure = failure.about("file", path.to_string_lossy());
                ending = ending.worse(failure.report(Report::json(args.json)));
            }
        }
    }
    Ok(ending)
}

struct Indexed {
    path: PathBuf,
    index: Index,
    bytes: u64,
    /// Why it was written; `None` if the existing one fits.
    why: Option<&'static str>,
}

fn index(recording: &Path, force: bool) -> Result<Indexed> {
    if recording.as_os_str() == "-" {
        return Err(Failure::usage("an index is added to its recording: name a file"));
    }
    if tapdeck_host::is_encrypted(recording) {
        let path = recording.display();
        let why = "the index would hold its screens in the clear";
        return Err(Failure::check(format!("{path} is encrypted, and cannot be indexed: {why}")));
    }
    let source = native(recording, &IdentityArgs::default(), "indexed")?;
    let file = source.file().map_err(|e| Failure::io(format!("{}: {e}", recording.display())))?;
    let fail = |e: &dyn std::fmt::Display| Failure::io(format!("{}: {e}", recording.display()));
    let pipes = source.meta().is_some_and(|meta| meta.pipes);
    let options = IndexOptions::default().pipes(pipes);
    let (partial, why) = match Existing::find(source.sidecar(INDEX), &file, force, options) {
        Existing::Whole(index, bytes) => {
            return Ok(Indexed { path: recording.to_owned(), index, bytes, why: None });
        }
        Existing::Partial(partial) => (*partial, "broke off, and was gone on with"),
        Existing::Useless(why) => (PartialIndex::new(options), why),
    };
    let total = file.metadata().map_or(0, |m| m.len());
    let done = Arc::new(AtomicU64::new(partial.offset));
    let mut progress = Progress::new("indexing");
    let mut out = tapdeck_host::scratch().map_err(|e| Failure::io(format!("no temporary file: {e}")))?;
    let mut bytes = 0;
    if let Some(mut kept) = partial.old {
        bytes = std::io::copy(&mut kept, &mut out).map_err(|e| fail(&e))?;
    }
    let mut blocks =
        Blocks::open(Arc::new(source.file().map_err(|e| fail(&e))?), partial.offset, done.clone());
    let built = index_blocks::<IndexError>(
        partial.builder,
        || blocks.next_item(),
        |piece| {
            progress.tick(done.load(Ordering::Relaxed), total);
            bytes += piece.len() as u64;
            out.write_all(piece).map_err(IndexError::Out)
        },
    );
    progress.clear();
    built.map_err(|stop| match stop {
        IndexError::Tape(e) => fail(&e),
        IndexError::Out(e) => fail(&e),
    })?;
    let index = Index::load(&out).map_err(|_| {
        Failure::check(format!("{}: no recording: not one whole block in it", recording.display()))
    })?;
    out.rewind().map_err(|e| fail(&e))?;
    add(recording, out)?;
    Ok(Indexed { path: recording.to_owned(), index, bytes, why: Some(why) })
}

/// Adds an index to a recording. One beside it, of an earlier version, is of no use any more.
fn add(recording: &Path, index: File) -> Result<()> {
    let mut addition = Addition::begin(recording)?;
    addition.add_from(INDEX, index)?;
    addition.commit()?;
    // Most often there is none.
    let _ = tapdeck_host::disk::remove_file(&sidecar(recording, INDEX));
    Ok(())
}

/// The index that is there already.
enum Existing {
    /// It fits the recording, and has this many bytes.
    Whole(Index, u64),
    Partial(Box<PartialIndex>),
    /// There is none, or none to go on with: the reason for a new one.
    Useless(&'static str),
}

impl Existing {
    fn find(old: Option<Box<dyn ReadSeek>>, recording: &File, force: bool, options: IndexOptions) -> Self {
        let Some(mut old) = old else { return Self::Useless("written") };
        if force {
            return Self::Useless("made anew");
        }
        let unfit = Self::Useless("did not fit, and was made anew");
        let Ok(mut index) = Index::load(&mut old) else { return unfit };
        let Ok(fits) = index.check(recording) else { return unfit };
        let whole = index.whole_keyframes(&mut old);
        if fits && whole == index.keyframes.len() {
            let bytes = old.seek(SeekFrom::End(0)).unwrap_or(0);
            return Self::Whole(index, bytes);
        }
        index.keyframes.truncate(whole);
        PartialIndex::by(options, &index, old).map_or(unfit, |partial| Self::Partial(Box::new(partial)))
    }
}

/// An index to go on with.
struct PartialIndex {
    builder: IndexBuilder,
    /// The part of the existing index that is kept.
    old: Option<std::io::Take<Box<dyn ReadSeek>>>,
    /// The place in the recording from which to go on.
    offset: u64,
}

impl PartialIndex {
    /// An empty index.
    fn new(options: IndexOptions) -> Self {
        Self { builder: IndexBuilder::new(options), old: None, offset: 0 }
    }

    /// The index up to its last keyframe.
    fn by(options: IndexOptions, index: &Index, mut old: Box<dyn ReadSeek>) -> Option<Self> {
        let keyframe = index.keyframes.last()?;
        let dump = index.dump(&mut old, keyframe).ok()?;
        old.seek(SeekFrom::Start(0)).ok()?;
        let builder = IndexBuilder::resume(options, keyframe, &dump);
        Some(Self { builder, old: Some(old.take(keyframe.end())), offset: keyframe.block_offset })
    }
}

/// Why the index was not built.
enum IndexError {
    Tape(tapdeck_tape::Error),
    Out(std::io::Error),
}

impl From<tapdeck_tape::Error> for IndexError {
    fn from(e: tapdeck_tape::Error) -> Self {
        IndexError::Tape(e)
    }
}

impl Indexed {
    fn say(&self) {
        let amount = format!(
            "{} keyframes, {} moments, {}",
            self.index.keyframes.len(),
            self.index.moments.len(),
            human::bytes(self.bytes)
        );
        match self.why {
            Some(why) => say(format_args!("the index of {} {why}: {amount}", self.path.display())),
            None => say(format_args!("the index of {} fits: {amount}", self.path.display())),
        }
    }

    fn to_json(&self, recording: &Path) -> Value {
        json!({
            "file": recording.to_string_lossy(),
            "written": self.why.is_some(),
            "keyframes": self.index.keyframes.len(),
            "moments": self.index.moments.len(),
            "bytes": self.bytes,
        })
    }
}
