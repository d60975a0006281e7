//! The files that a test depends on, so that it can run again when one of them changes.

use std::cell::RefCell;
use std::path::PathBuf;

use tapdeck_tape::scenario::{Scenario, Source};

use super::scenario::{Case, folder_of, load, stored_text};

impl Case {
    /// The files and folders whose change may change what comes of it: the scenario, what it
    /// includes, its stored texts, what it copies, its cassette, and the program. Some may not
    /// exist.
    pub fn sources(&self) -> Vec<PathBuf> {
        let folder = folder_of(&self.path);
        let asked = RefCell::new(vec![self.path.clone()]);
        let stored = |file: &str| {
            let path = folder.join(file);
            asked.borrow_mut().push(path.clone());
            stored_text(&path)
        };
        // What it asked for is known even if it cannot be understood.
        let _ = stored_text(&self.path)
            .map(|text| Scenario::parse_variant(&text, self.variant.as_deref(), &stored));
        let mut found = asked.into_inner();
        let Ok(loaded) = load(self) else { return found };
        found.push(loaded.cassette());
        if let Some(Source::Program(program)) = &loaded.scenario.source {
            found.extend(program.copy.iter().map(|name| folder.join(name)));
            let root = folder.join(loaded.scenario.root.as_deref().unwrap_or("."));
            let placed = program.run.iter().map(|arg| arg.replace("{root}", &root.to_string_lossy()));
            found.extend(placed.map(PathBuf::from).filter(|path| path.is_absolute() || path.is_file()));
            if let Some(name) = program.run.first().filter(|name| !name.contains('/')) {
                let path = std::env::var_os("PATH").unwrap_or_default();
                found
                    .extend(std::env::split_paths(&path).map(|at| at.join(name)).find(|path| path.is_file()));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}
