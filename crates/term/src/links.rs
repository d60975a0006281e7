//! Hyperlinks (OSC 8), each kept once and referred to by number.
//!
//! Rows in scrollback refer to them too, so they cannot be swept with the screens. Numbers only
//! grow; when the links take more than their share of memory the oldest are forgotten, and text
//! that refers to them is no link any more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::untrusted::{is_safe_link, is_unsafe};

const MAX_ID: usize = 250;
const MAX_BYTES: usize = 4 << 20;

/// Where a hyperlink leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The `id` parameter, empty when there was none.
    pub id: String,
    /// The target, as sent.
    pub uri: String,
}

/// Whether the `id` of a link can be kept, and written again as it is.
pub(crate) fn is_safe_id(id: &str) -> bool {
    id.len() <= MAX_ID && !id.chars().any(|c| is_unsafe(c) || matches!(c, ';' | ':'))
}

#[derive(Clone, Debug)]
pub(crate) struct Links {
    list: VecDeque<Arc<Link>>,
    index: HashMap<Arc<Link>, u32>,
    first: u32,
    bytes: usize,
}

impl Links {
    pub(crate) fn new() -> Self {
        Self { list: VecDeque::new(), index: HashMap::new(), first: 1, bytes: 0 }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Link> {
        self.list.get(id.checked_sub(self.first)? as usize).map(|l| &**l)
    }

    /// The number of a link; 0 when there is none to be made of it.
    pub(crate) fn intern(&mut self, id: &str, uri: &str) -> u32 {
        if !is_safe_link(uri) || !is_safe_id(id) {
            return 0;
        }
        let link = Link { id: id.to_owned(), uri: uri.to_owned() };
        if let Some(&n) = self.index.get(&link) {
            return n;
        }
        let size = id.len() + uri.len() + 64;
        while self.bytes + size > MAX_BYTES
            && let Some(old) = self.list.pop_front()
        {
            self.index.remove(&old);
            self.first += 1;
            self.bytes -= old.id.len() + old.uri.len() + 64;
        }
        let n = self.first + self.list.len() as u32;
        let link = Arc::new(link);
        self.list.push_back(Arc::clone(&link));
        self.index.insert(link, n);
        self.bytes += size;
        n
    }
}
