//! A file system that remembers what was synced. It follows a journal, and makes the states that a
//! power cut could leave behind.
//!
//! What was synced is there. Of the other writes, each sector of 512 bytes has any of its versions,
//! is torn between two, or was never written and reads as zeros or garbage. The length is any that
//! the file had since. Names that were not synced exist or not. But a change of a name is there
//! only with the earlier changes of the same name, and a rename is there wholly or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapdeck_host::disk::journal::{Inode, Op};

use crate::rng::Rng;

const SECTOR: usize = 512;

#[derive(Clone)]
enum Node {
    File { durable: Vec<u8>, pending: Vec<(usize, Data)> },
    Folder,
    Link(PathBuf),
}

#[derive(Clone)]
enum Data {
    Write(u64, Arc<[u8]>),
    Len(u64),
}

impl Data {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Data::Len(len) => content.resize(*len as usize, 0),
            Data::Write(at, bytes) => {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[at..end].copy_from_slice(bytes);
            }
        }
    }
}

/// A name in a folder.
type Slot = (usize, OsString);

/// Names that change in one step.
struct Naming {
    at: usize,
    sets: Vec<(Slot, Option<usize>)>,
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<Slot, usize>) {
        for (slot, node) in &self.sets {
            match node {
                Some(node) => names.insert(slot.clone(), *node),
                None => names.remove(slot),
            };
        }
    }

    fn shares_a_slot(&self, other: &Naming) -> bool {
        self.sets.iter().any(|(slot, _)| other.sets.iter().any(|(theirs, _)| slot == theirs))
    }
}

/// The folder that a scenario works in.
pub(crate) struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
    inodes: HashMap<Inode, usize>,
    now: BTreeMap<Slot, usize>,
    durable: BTreeMap<Slot, usize>,
    pending: Vec<Naming>,
}

impl Disk {
    /// Takes a folder as it is, all of it synced.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let mut this = Self {
            root: root.to_owned(),
            nodes: vec![Node::Folder],
            inodes: HashMap::new(),
            now: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
        };
        this.scan(root, 0)?;
        this.durable = this.now.clone();
        Ok(this)
    }

    fn scan(&mut self, folder: &Path, node: usize) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, meta) = (entry.path(), entry.metadata()?);
            let inode = (meta.dev(), meta.ino());
            let child = match self.inodes.get(&inode) {
                Some(child) => *child,
                None if meta.is_dir() => self.add(Node::Folder),
                None if meta.is_symlink() => self.add(Node::Link(fs::read_link(&path)?)),
                None => self.add(Node::File { durable: fs::read(&path)?, pending: Vec::new() }),
            };
            self.inodes.insert(inode, child);
            self.now.insert((node, entry.file_name()), child);
            if meta.is_dir() {
                self.scan(&path, child)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let mut node = 0;
        for name in path.strip_prefix(&self.root).ok()? {
            node = *self.now.get(&(node, name.to_owned()))?;
        }
        Some(node)
    }

    fn slot(&self, path: &Path) -> Option<Slot> {
        Some((self.find(path.parent()?)?, path.file_name()?.to_owned()))
    }

    fn name(&mut self, at: usize, sets: Vec<(Slot, Option<usize>)>) {
        let naming = Naming { at, sets };
        naming.apply(&mut self.now);
        self.pending.push(naming);
    }

    fn data(&mut self, at: usize, inode: Inode, data: Data) {
        let node = self.inodes.get(&inode).and_then(|node| self.nodes.get_mut(*node));
        if let Some(Node::File { pending, .. }) = node {
            pending.push((at, data));
        }
    }

    fn current_len(&self, node: usize) -> u64 {
        let Node::File { durable, pending } = &self.nodes[node] else { return 0 };
        pending.iter().fold(durable.len() as u64, |len, (_, data)| match data {
            Data::Len(len) => *len,
            Data::Write(at, bytes) => len.max(at + bytes.len() as u64),
        })
    }

    /// Follows one change; what is outside of the folder does not matter.
    pub(crate) fn apply(&mut self, at: usize, op: &Op) {
        // Only names below the root are found.
        let _ = self.follow(at, op);
    }

    fn follow(&mut self, at: usize, op: &Op) -> Option<()> {
        match op {
            Op::Open(path, inode, len) => {
                let slot = self.slot(path)?;
                match self.now.get(&slot) {
                    Some(node) if self.current_len(*node) != *len => {
                        self.data(at, *inode, Data::Len(*len));
                    }
                    Some(_) => {}
                    None => {
                        let node = self.add(Node::File { durable: Vec::new(), pending: Vec::new() });
                        self.inodes.insert(*inode, node);
                        self.name(at, vec![(slot, Some(node))]);
                    }
                }
            }
            Op::Nameless(inode) => {
                let node = self.add(Node::File { durable: Vec::new(), pending: Vec::new() });
                self.inodes.insert(*inode, node);
            }
            Op::Write(inode, offset, bytes) => self.data(at, *inode, Data::Write(*offset, bytes.clone())),
            Op::SetLen(inode, len) => self.data(at, *inode, Data::Len(*len)),
            Op::Sync(inode, before) => {
                let node = *self.inodes.get(inode)?;
                if let Node::File { durable, pending } = &mut self.nodes[node] {
                    pending.iter().filter(|(at, _)| at < before).for_each(|(_, data)| data.apply(durable));
                    pending.retain(|(at, _)| at >= before);
                }
            }
            Op::Link(path, inode) => {
                let (slot, node) = (self.slot(path)?, *self.inodes.get(inode)?);
                self.name(at, vec![(slot, Some(node))]);
            }
            Op::Rename(from, to) => {
                let (from, to) = (self.slot(from)?, self.slot(to)?);
                let node = *self.now.get(&from)?;
                self.name(at, vec![(from, None), (to, Some(node))]);
            }
            Op::Exchange(a, b) => {
                let (a, b) = (self.slot(a)?, self.slot(b)?);
                let (at_a, at_b) = (*self.now.get(&a)?, *self.now.get(&b)?);
                self.name(at, vec![(a, Some(at_b)), (b, Some(at_a))]);
            }
            Op::Remove(path) => {
                let slot = self.slot(path)?;
                self.remove(at, slot);
            }
            Op::Folder(path) => {
                let slot = self.slot(path)?;
                let node = self.add(Node::Folder);
                self.name(at, vec![(slot, Some(node))]);
            }
            Op::Symlink(path, target) => {
                let slot = self.slot(path)?;
                let node = self.add(Node::Link(target.clone()));
                self.name(at, vec![(slot, Some(node))]);
            }
            Op::SyncFolder(path, before) => {
                let folder = self.find(path)?;
                self.sync_names(folder, *before);
            }
            _ => {}
        }
        Some(())
    }

    fn remove(&mut self, at: usize, slot: Slot) {
        let Some(node) = self.now.get(&slot).copied() else { return };
        if matches!(self.nodes[node], Node::Folder) {
            let inside: Vec<Slot> = children(&self.now, node).map(|(slot, _)| slot.clone()).collect();
            inside.into_iter().for_each(|slot| self.remove(at, slot));
        }
        self.name(at, vec![(slot, None)]);
    }

    fn sync_names(&mut self, folder: usize, before: usize) {
        let mut synced = BTreeSet::new();
        for i in (0..self.pending.len()).rev() {
            let naming = &self.pending[i];
            let here = naming.at < before && naming.sets.iter().any(|((f, _), _)| *f == folder);
            if here || synced.iter().any(|later: &usize| self.pending[*later].shares_a_slot(naming)) {
                synced.insert(i);
            }
        }
        for (i, naming) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            if synced.contains(&i) {
                naming.apply(&mut self.durable);
            } else {
                self.pending.push(naming);
            }
        }
    }

    /// Puts a state that a power cut at this moment could leave into the folder `to`.
    pub(crate) fn crash(&self, rng: &mut Rng, to: &Path) -> io::Result<()> {
        let mut names = self.durable.clone();
        let style = rng.below(4);
        let kept = rng.below(self.pending.len() + 1);
        let mut lost: Vec<&Naming> = Vec::new();
        for (i, naming) in self.pending.iter().enumerate() {
            let pick = match style {
                0 => false,
                1 => true,
                2 => i < kept,
                _ => rng.chance(2),
            };
            if pick && !lost.iter().any(|earlier| earlier.shares_a_slot(naming)) {
                naming.apply(&mut names);
            } else {
                lost.push(naming);
            }
        }
        let mut places = HashMap::new();
        self.put(0, to, &names, rng, &mut places)?;
        self.renumber(0, to, &names, &places)
    }

    fn put(
        &self,
        folder: usize,
        to: &Path,
        names: &BTreeMap<Slot, usize>,
        rng: &mut Rng,
        places: &mut HashMap<usize, PathBuf>,
    ) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
        for ((_, name), node) in children(names, folder) {
            let path = to.join(name);
            match &self.nodes[*node] {
                Node::Folder => self.put(*node, &path, names, rng, places)?,
                Node::Link(target) => symlink(target, &path)?,
                Node::File { .. } if places.contains_key(node) => fs::hard_link(&places[node], &path)?,
                Node::File { durable, pending } => {
                    let mut file = fs::OpenOptions::new();
                    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
                    file.write_all(&content(durable, pending, rng))?;
                    places.insert(*node, path);
                }
            }
        }
        Ok(())
    }

    /// Renames folders that are named after a file's number: the file has another one now.
    fn renumber(
        &self,
        folder: usize,
        at: &Path,
        names: &BTreeMap<Slot, usize>,
        places: &HashMap<usize, PathBuf>,
    ) -> io::Result<()> {
        for ((_, name), node) in children(names, folder) {
            if !matches!(self.nodes[*node], Node::Folder) {
                continue;
            }
            self.renumber(*node, &at.join(name), names, places)?;
            let number = |part: &str| u64::from_str_radix(part, 16).ok();
            let parts = name.to_str().and_then(|n| n.split_once('-'));
            let inode = parts.and_then(|(dev, ino)| Some((number(dev)?, number(ino)?)));
            let file = inode.and_then(|inode| places.get(self.inodes.get(&inode)?));
            if let Some(meta) = file.and_then(|file| file.metadata().ok()) {
                fs::rename(at.join(name), at.join(format!("{:x}-{:x}", meta.dev(), meta.ino())))?;
            }
        }
        Ok(())
    }
}

fn children(names: &BTreeMap<Slot, usize>, folder: usize) -> impl Iterator<Item = (&Slot, &usize)> {
    names.range((folder, OsString::new())..(folder + 1, OsString::new()))
}

/// What is left of a file.
fn content(durable: &[u8], pending: &[(usize, Data)], rng: &mut Rng) -> Vec<u8> {
    if pending.is_empty() {
        return durable.to_vec();
    }
    let style = rng.below(4);
    if style == 0 {
        return durable.to_vec();
    }
    let mut versions = vec![durable.to_vec()];
    for (_, data) in pending {
        let mut next = versions.last().cloned().unwrap_or_default();
        data.apply(&mut next);
        versions.push(next);
    }
    if style == 1 {
        return versions.pop().unwrap_or_default();
    }
    if style == 2 {
        // The first few writes, in their order.
        return versions.swap_remove(rng.below(versions.len()));
    }
    // Bytes below this were there all the time: their sectors have one of their versions.
    let floor = versions.iter().map(Vec::len).min().unwrap_or(0);
    let len = versions[rng.below(versions.len())].len();
    let mut left = vec![0; len];
    let (loss, garbage) = (2 + rng.below(30), rng.chance(2));
    for start in (0..len).step_by(SECTOR) {
        let end = len.min(start + SECTOR);
        let lost = rng.chance(loss);
        let tear = if rng.chance(8) { start + rng.below(end - start + 1) } else { end };
        let (first, second) = (rng.version(versions.len()), rng.version(versions.len()));
        for (at, byte) in left[start..end].iter_mut().enumerate().map(|(i, byte)| (start + i, byte)) {
            let version = &versions[if at < tear { first } else { second }];
            *byte = match version.get(at) {
                Some(byte) if at < floor || !lost => *byte,
                _ if garbage => rng.next() as u8,
                _ => 0,
            };
        }
    }
    left
}
