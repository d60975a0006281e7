//! What to scrub, as the command line says it: packs, rules in files, values of variables.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tapdeck::scrub::{Owner, Rules, ScrubError, Selection};

use crate::ending::code;

/// Rules beside the packs.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ScrubArgs {
    /// More rules, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Leave out a rule of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
    /// Mask the value of this environment variable wherever it is seen
    #[arg(long, value_name = "NAME")]
    pub(crate) secret_env: Vec<String>,
    /// Mask each line of this file wherever it is seen
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Vec<PathBuf>,
}

/// A message, and the exit code that goes with it.
pub(crate) type Refused = (String, i32);

impl ScrubArgs {
    /// The rules to use, ready.
    pub(crate) fn rules(&self, packs: &[String], owner: &Owner) -> Result<Arc<Rules>, Refused> {
        let selection = Selection {
            packs: packs.to_vec(),
            files: self.rules.clone(),
            without: self.no_rule.clone(),
            secret_variables: self.secret_env.clone(),
            secret_files: self.secret_file.clone(),
        };
        selection.load(owner).map_err(|e| match &e {
            ScrubError::NoRule(_) => (format!("{e}: see tapdeck scrub --list-rules"), code::USAGE),
            ScrubError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                (e.to_string(), code::NOT_FOUND)
            }
            ScrubError::Read { .. } => (e.to_string(), code::IO),
            _ => (e.to_string(), code::USAGE),
        })
    }
}
