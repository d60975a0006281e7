//! The arguments that select scrub rules: packs, rules in files, values of variables.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tapdeck::scrub::{Owner, Rules, ScrubError, Selection};

use crate::ending::Kind;
use crate::failure::{Failure, Result};

/// Rules beside the packs.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ScrubArgs {
    /// Additional rules, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Do not use the rule of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
    /// Mask the value of this environment variable
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) secret_env: Vec<String>,
    /// Mask each line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Vec<PathBuf>,
}

impl ScrubArgs {
    /// Loads the rules that these arguments and the packs select.
    pub(crate) fn rules(&self, packs: &[String], owner: &Owner) -> Result<Arc<Rules>> {
        self.rules_and(packs, owner, Vec::new())
    }

    /// Loads the rules that these arguments and the packs select, with values that are masked.
    pub(crate) fn rules_and(
        &self,
        packs: &[String],
        owner: &Owner,
        secrets: Vec<(String, String)>,
    ) -> Result<Arc<Rules>> {
        let selection = Selection::default()
            .packs(packs)
            .files(&self.rules)
            .without(&self.no_rule)
            .secret_variables(&self.secret_env)
            .secret_files(&self.secret_file)
            .secrets(secrets);
        selection.load(owner).map_err(|e| match &e {
            ScrubError::NoRule(_) => Failure::usage(format!("{e}: see tapdeck scrub --list-rules")),
            ScrubError::Read { source, .. } => Failure::new(Kind::of_io(source), e.to_string()),
            _ => Failure::usage(e.to_string()),
        })
    }
}
