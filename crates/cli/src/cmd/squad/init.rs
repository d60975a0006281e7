//! `tapdeck squad init`: a squad file to begin with.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tapdeck::OutFile;

use crate::ending::{Ending, print, say};
use crate::failure::{Failure, Result};

/// Write a squad file to begin with.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck squad init review
  tapdeck squad init fan-out -o -        print it")]
pub(crate) struct InitArgs {
    /// What the squad does
    #[arg(value_enum)]
    recipe: Recipe,
    /// The file to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "squad.toml")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
}

/// A squad file that is ready to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Recipe {
    /// A writer, and a reviewer whose remarks go back until it approves
    Review,
    /// The same task for three agents in worktrees, and a judge that names the best
    FanOut,
}

impl Recipe {
    fn text(self) -> &'static str {
        match self {
            Self::Review => include_str!("recipes/review.toml"),
            Self::FanOut => include_str!("recipes/fan-out.toml"),
        }
    }
}

pub(crate) fn run(args: &InitArgs) -> Result {
    if args.output.as_os_str() == "-" {
        print(format_args!("{}", args.recipe.text()));
        return Ok(Ending::Done);
    }
    let failed = |e: std::io::Error| Failure::write(&args.output, &e);
    let mut file = OutFile::create_shared(&args.output, args.overwrite).map_err(failed)?;
    file.write_all(args.recipe.text().as_bytes()).and_then(|()| file.commit()).map_err(failed)?;
    let file = args.output.display();
    say(format_args!("wrote {file}: change the commands and the prompts, then run tapdeck squad up {file}"));
    Ok(Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_a_squad() {
        for recipe in Recipe::value_variants() {
            tapdeck::squad::Squad::parse(recipe.text()).expect("a squad");
        }
    }
}
