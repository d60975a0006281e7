//! `tapdeck recordings`: titles and tags of finished recordings.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use tapdeck_host::describe;
use tapdeck_tape::meta::Meta;

use crate::ending::{Ending, Report, print, print_json};
use crate::failure::Result;
use crate::input::native;
use crate::keys::IdentityArgs;
use crate::{human, parse};

/// Change the title and the tags of recordings.
#[derive(Args)]
#[command(
    visible_alias = "recs",
    after_help = "\
A change is added to the end of the file, so what was recorded stays as it was. tapdeck verify lists
it as added later, and the seal of a sealed recording does not cover it. While a recording is in
progress, it cannot be changed. The files beside an older recording are put into it first, as by
tapdeck repair --adopt.

Examples:
  tapdeck recordings title demo.ahr 'The parser, second attempt'
  tapdeck recordings tag demo.ahr ticket=1234 keep
  tapdeck recordings tag demo.ahr --remove keep
  tapdeck recordings tag demo.ahr             print the tags"
)]
pub(crate) struct RecordingsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Set the title of a recording
    Title(TitleArgs),
    /// Set and remove tags of a recording, or print them
    Tag(TagArgs),
}

#[derive(Args)]
struct TitleArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The new title; an empty one removes it
    #[arg(value_name = "TEXT", value_parser = parse::line)]
    title: String,
}

#[derive(Args)]
struct TagArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Tags to set
    #[arg(value_name = "NAME[=VALUE]", value_parser = parse::tag)]
    tags: Vec<(String, String)>,
    /// Remove the tag of this name; repeatable
    #[arg(long, value_name = "NAME", value_parser = parse::tag_name)]
    remove: Vec<String>,
    /// Print the tags as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

impl RecordingsArgs {
    /// How the command reports a failure.
    pub(super) fn report(&self) -> Report {
        match &self.action {
            Action::Title(_) => Report::Text,
            Action::Tag(args) => Report::json(args.json),
        }
    }
}

pub(crate) fn run(args: &RecordingsArgs) -> Result {
    let (file, done) = match &args.action {
        Action::Title(args) => (&args.file, title(args)),
        Action::Tag(args) => (&args.file, tag(args)),
    };
    done.map_err(|failure| failure.about("file", file.to_string_lossy()))?;
    Ok(Ending::Done)
}

fn title(args: &TitleArgs) -> Result<()> {
    native(&args.file, &IdentityArgs::default(), "given a title")?;
    let title = Some(args.title.clone()).filter(|title| !title.is_empty());
    describe(&args.file, |meta| meta.title = title)?;
    Ok(())
}

fn tag(args: &TagArgs) -> Result<()> {
    let source = native(&args.file, &args.identity, "tagged")?;
    let changes = !args.tags.is_empty() || !args.remove.is_empty();
    let meta = if changes { change(&args.file, args)? } else { source.meta().unwrap_or_default() };
    if args.json {
        print_json(&json!({"file": args.file.to_string_lossy(), "tags": meta.tags}));
    } else if !changes {
        meta.tags.iter().for_each(|tag| print(format_args!("{}\n", tag_text(tag))));
    }
    Ok(())
}

fn change(file: &Path, args: &TagArgs) -> Result<Meta> {
    let meta = describe(file, |meta| {
        meta.tags.retain(|name, _| !args.remove.contains(name));
        meta.tags.extend(args.tags.iter().cloned());
    })?;
    Ok(meta)
}

/// A tag as it was given.
pub(super) fn tag_text((name, value): (&String, &String)) -> String {
    let text = if value.is_empty() { name.clone() } else { format!("{name}={value}") };
    human::printable(&text)
}
