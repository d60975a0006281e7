//! Grapheme clusters of more than one scalar value, each kept once.
//!
//! Like the styles they are swept, not counted: only the two screens refer to them by number. Text
//! repeats itself, so a small cache answers most of the time what a cell becomes when a character
//! joins it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// The most bytes that one cell may hold; marks past that are dropped, so that a flood of them
/// stays bounded.
pub(crate) const MAX_CLUSTER: usize = 128;
const FIRST_SWEEP: usize = 4096;
const CACHE: usize = 512;

#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    list: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32, BuildHasherDefault<Fast>>,
    sweep_at: usize,
    /// What a cell's text and a character joined to before: the two, and the cluster.
    cache: Box<[(u32, u32, u32)]>,
}

impl Clusters {
    pub(crate) fn new() -> Self {
        Self {
            list: Vec::new(),
            index: HashMap::default(),
            sweep_at: FIRST_SWEEP,
            cache: vec![(0, 0, 0); CACHE].into(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &str {
        &self.list[id as usize]
    }

    fn slot(text: u32, c: char) -> usize {
        let h = text.wrapping_mul(0x9e37_79b1) ^ u32::from(c).wrapping_mul(0x85eb_ca6b);
        (h >> 20) as usize % CACHE
    }

    /// The cluster that a cell's text and a character made before.
    #[inline]
    pub(crate) fn cached(&self, text: u32, c: char) -> Option<u32> {
        let (t, k, id) = self.cache[Self::slot(text, c)];
        (t == text && k == u32::from(c)).then_some(id)
    }

    /// Remembers what they make.
    pub(crate) fn remember(&mut self, text: u32, c: char, id: u32) {
        self.cache[Self::slot(text, c)] = (text, u32::from(c), id);
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
        self.cache.fill((0, 0, 0));
        renumbered
    }
}

/// A quick hash. The table is small and swept, so a program that makes keys collide slows down
/// no cell but its own.
#[derive(Default)]
struct Fast(u64);

impl Hasher for Fast {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
