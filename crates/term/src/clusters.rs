//! Grapheme clusters of more than one scalar value, each kept once.
//!
//! Like the styles they are swept, not counted: only the two screens refer to them by number.

use std::collections::HashMap;
use std::sync::Arc;

/// The most bytes that one cell may hold; marks past that are dropped, so that a flood of them stays bounded.
pub(crate) const MAX_CLUSTER: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    list: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
    sweep_at: usize,
}

const FIRST_SWEEP: usize = 4096;

impl Clusters {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), index: HashMap::new(), sweep_at: FIRST_SWEEP }
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        &self.list[id as usize]
    }

    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = self.list.len() as u32;
        let text: Arc<str> = text.into();
        self.list.push(Arc::clone(&text));
        self.index.insert(text, id);
        id
    }

    pub(crate) fn wants_sweep(&self) -> bool {
        self.list.len() >= self.sweep_at
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Forgets the clusters whose entry in `live` is false; returns the new number of each old one.
    pub(crate) fn sweep(&mut self, live: &[bool]) -> Vec<u32> {
        let mut renumbered = vec![0; self.list.len()];
        let mut kept = Vec::new();
        for (id, text) in std::mem::take(&mut self.list).into_iter().enumerate() {
            if live[id] {
                renumbered[id] = kept.len() as u32;
                kept.push(text);
            }
        }
        self.list = kept;
        self.index = self.list.iter().enumerate().map(|(i, t)| (Arc::clone(t), i as u32)).collect();
        self.sweep_at = (self.list.len() * 2).max(FIRST_SWEEP);
        renumbered
    }
}
