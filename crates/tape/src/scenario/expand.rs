//! What a scenario is put together from: the files that it includes, and the parameters of which
//! each combination is a test of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tree::{self, Content, Line, MAX_WEIGHT, Node};
use super::{ScenarioError, Stored};
use crate::nearest;

/// How deep files may include one another, and how many inclusions a scenario may have.
const MAX_DEPTH: usize = 8;
const MAX_INCLUDED: usize = 64;

/// The most combinations of one scenario.
const MAX_VARIANTS: usize = 256;

/// What belongs to a scenario itself, and is not taken from one that is included.
const OWN: [&str; 3] = ["scenario", "about", "cassette"];

/// A scenario with everything that it includes, before its parameters have values.
pub(super) struct Whole {
    tree: Node,
    parameters: Vec<(Node, Node)>,
    pub(super) variants: Vec<Variant>,
    /// Whether there is a matrix or a parameter, so that `{{NAME}}` means something.
    is_parametric: bool,
}

/// A combination of the matrix.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    pub(super) name: String,
    values: Vec<(Node, Node)>,
}

impl Whole {
    pub(super) fn read(text: &str, stored: Stored<'_>) -> Result<Self, ScenarioError> {
        let mut includer = Includer { stored, open: Vec::new(), count: 0, weight: 0 };
        let mut tree = includer.resolve(tree::read(text, None)?, "")?;
        let parameters = match tree.take("parameters") {
            Some(node) => values(node, "parameters")?,
            None => Vec::new(),
        };
        let matrix = tree.take("matrix");
        let is_parametric = matrix.is_some() || !parameters.is_empty();
        let variants = matrix.map(variants).transpose()?.unwrap_or_default();
        if !variants.is_empty()
            && let Some(path) = tree.get("cassette").and_then(|cassette| cassette.get("path"))
            && !path.text().is_some_and(|text| text.contains("{{"))
        {
            return Err(path.error(
                "all combinations would have the same cassette: leave path out, or name a parameter in it",
            ));
        }
        Ok(Self { tree, parameters, variants, is_parametric })
    }

    /// The scenario with the values of a combination, by its name.
    pub(super) fn choose(self, name: Option<&str>) -> Result<Node, ScenarioError> {
        let Self { mut tree, mut parameters, variants, is_parametric } = self;
        let chosen = match name {
            Some(name) => variants.iter().find(|v| v.name == name),
            None => variants.first(),
        };
        let values = match (chosen, name) {
            (Some(variant), _) => variant.values.as_slice(),
            (None, None) => &[],
            (None, Some(name)) => {
                return Err(tree.error(format!("the matrix has no combination [{name}]")));
            }
        };
        if !is_parametric {
            return Ok(tree);
        }
        let (mut used, mut left) = (BTreeSet::new(), MAX_WEIGHT);
        for (_, value) in &mut parameters {
            // A parameter may be made of the matrix, not of other parameters.
            Filler { sources: &[values], used: &mut used, left: &mut left, is_open: true }.fill(value)?;
        }
        Filler { sources: &[values, &parameters], used: &mut used, left: &mut left, is_open: false }
            .fill(&mut tree)?;
        let own = values.iter().chain(parameters.iter().filter(|(key, _)| key.line.file.is_none()));
        let unused = own.map(|(key, _)| key).find(|key| !used.contains(key.text().unwrap_or_default()));
        match unused {
            Some(key) => {
                let name = key.text().unwrap_or_default();
                Err(key
                    .error(format!("nothing uses {name}: write \"{{{{{name}}}}}\" where its value belongs")))
            }
            None => Ok(tree),
        }
    }
}

/// Resolves inclusions.
struct Includer<'a> {
    stored: Stored<'a>,
    /// The files that are being included, from the outermost.
    open: Vec<String>,
    count: usize,
    weight: usize,
}

impl Includer<'_> {
    /// A scenario, or a part of one from this file, with what it includes.
    fn resolve(&mut self, mut node: Node, file: &str) -> Result<Node, ScenarioError> {
        let included = node.take("include");
        if let Content::Map(entries) = &mut node.content {
            for (_, value) in entries {
                self.splice(value, file)?;
            }
        }
        let Some(included) = included else { return Ok(node) };
        let mut whole = Node { line: node.line.clone(), content: Content::Map(Vec::new()) };
        for name in names(&included)? {
            let mut part = self.file(name, file)?;
            if !matches!(part.content, Content::Map(_)) {
                let what = "this file is included by a scenario, so it has keys of a scenario, not a list";
                return Err(part.error(what));
            }
            for own in OWN {
                part.take(own);
            }
            merge(&mut whole, part, true);
        }
        merge(&mut whole, node, true);
        Ok(whole)
    }

    /// Puts the items of included lists into a list, in place of `include: FILE`.
    fn splice(&mut self, list: &mut Node, file: &str) -> Result<(), ScenarioError> {
        let Content::List(items) = &mut list.content else { return Ok(()) };
        for mut item in std::mem::take(items) {
            let is_include = matches!(&item.content, Content::Map(entries) if entries.len() == 1);
            let Some(included) = item.take("include").filter(|_| is_include) else {
                items.push(item);
                continue;
            };
            for name in names(&included)? {
                let part = self.file(name, file)?;
                match part.content {
                    Content::List(more) => items.extend(more),
                    _ => return Err(part.error("this file is included in a list, so it must be a list")),
                }
            }
        }
        Ok(())
    }

    /// Reads a file that another one, by its name from the scenario's folder, includes.
    fn file(&mut self, name: &Node, from: &str) -> Result<Node, ScenarioError> {
        let Some(text) = name.text().filter(|text| !text.is_empty() && !text.starts_with('/')) else {
            return Err(name.error("include wants a file, as a path from the file that includes it"));
        };
        let path = beside(from, text);
        if self.open.contains(&path) {
            let way = self.open.join(" → ");
            return Err(name.error(format!("{path} includes itself: {way} → {path}")));
        }
        self.count += 1;
        if self.open.len() >= MAX_DEPTH {
            return Err(name.error(format!("files include one another more than {MAX_DEPTH} levels deep")));
        }
        if self.count > MAX_INCLUDED {
            return Err(name.error(format!("a scenario includes at most {MAX_INCLUDED} files")));
        }
        let text = (self.stored)(&path).map_err(|e| name.error(format!("cannot include {path}: {e}")))?;
        let node = tree::read(&text, Some(&Arc::from(path.as_str())))?;
        self.weight += node.weight();
        if self.weight > MAX_WEIGHT {
            return Err(name.error("the included files are too large"));
        }
        self.open.push(path.clone());
        let mut node = self.resolve(node, &path)?;
        self.splice(&mut node, &path)?;
        self.open.pop();
        Ok(node)
    }
}

/// One name, or a list of them.
fn names(node: &Node) -> Result<&[Node], ScenarioError> {
    match &node.content {
        Content::List(items) => Ok(items),
        Content::Scalar { .. } => Ok(std::slice::from_ref(node)),
        Content::Map(_) => Err(node.error("include wants a file, or a list of files")),
    }
}

/// A path from the folder of another file, without `.` and, where that is possible, `..`.
fn beside(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Puts one map into another. Its values replace those that are there, except that maps are merged
/// and the lists of a scenario itself go on.
fn merge(into: &mut Node, from: Node, is_top: bool) {
    let Content::Map(more) = from.content else { return };
    let Content::Map(entries) = &mut into.content else { return };
    for (key, value) in more {
        let Some((_, is)) = entries.iter_mut().find(|(known, _)| known.text() == key.text()) else {
            entries.push((key, value));
            continue;
        };
        match (&mut is.content, value.content) {
            (Content::Map(_), content @ Content::Map(_)) => {
                merge(is, Node { line: value.line, content }, false);
            }
            (Content::List(items), Content::List(more)) if is_top => items.extend(more),
            (_, content) => *is = Node { line: value.line, content },
        }
    }
}

/// The entries of a map of names and values.
fn values(node: Node, what: &str) -> Result<Vec<(Node, Node)>, ScenarioError> {
    let wrong = node.error(format!("{what} wants names and values, such as {{shell: bash}}"));
    let Content::Map(entries) = node.content else { return Err(wrong) };
    for (key, _) in &entries {
        let name = key.text().unwrap_or_default();
        if !is_name(name) {
            return Err(key.error(format!("{name:?} is no name: use letters, digits, - and _")));
        }
    }
    Ok(entries)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// The combinations of a matrix: of all values of all names, or those that are listed.
fn variants(matrix: Node) -> Result<Vec<Variant>, ScenarioError> {
    let line = matrix.line.clone();
    let wrong = |what: String| ScenarioError { line: line.clone(), what };
    let too_many = || wrong(format!("the matrix has more than {MAX_VARIANTS} combinations"));
    let combinations = match matrix.content {
        Content::List(listed) => {
            listed.into_iter().map(|entry| values(entry, "a combination")).collect::<Result<Vec<_>, _>>()?
        }
        _ => {
            let mut all = vec![Vec::new()];
            for (key, several) in values(matrix, "matrix")? {
                let Content::List(several) = several.content else {
                    let name = key.text().unwrap_or_default().to_owned();
                    return Err(several.error(format!("{name}: a list of values is wanted here")));
                };
                if all.len().saturating_mul(several.len()) > MAX_VARIANTS {
                    return Err(too_many());
                }
                let with = |before: &Vec<(Node, Node)>| {
                    let each =
                        several.iter().map(|value| [&before[..], &[(key.clone(), value.clone())]].concat());
                    each.collect::<Vec<_>>()
                };
                all = all.iter().flat_map(with).collect();
            }
            all
        }
    };
    if combinations.len() > MAX_VARIANTS {
        return Err(too_many());
    }
    if combinations.iter().all(Vec::is_empty) {
        return Err(wrong("the matrix has no combinations".into()));
    }
    let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
    let named = combinations.into_iter().map(|values| {
        let words = values.iter().map(|(_, value)| word(value)).collect::<Result<Vec<_>, _>>()?;
        let name = words.join(", ");
        if !names.insert(name.clone()) {
            return Err(wrong(format!("the combination [{name}] is there twice")));
        }
        if !files.insert(file_name(&name)) {
            return Err(wrong(format!("[{name}] and another combination would have the same file names")));
        }
        Ok(Variant { name, values })
    });
    named.collect()
}

/// The longest name of a value in the name of a test.
const MAX_WORD: usize = 40;

/// A value in the name of a test.
fn word(value: &Node) -> Result<String, ScenarioError> {
    let all = match &value.content {
        Content::Scalar { text, .. } => text.clone(),
        Content::List(items) => items.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(" "),
        Content::Map(_) => return Err(value.error("a text or a list is wanted here")),
    };
    let line: String = all.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORD).collect();
    Ok(line.trim().to_owned())
}

/// The name of a combination in names of files.
pub(super) fn file_name(variant: &str) -> String {
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
    let parts: Vec<&str> = variant.split(|c| !is_fine(c)).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// Puts values in place of `{{NAME}}`.
struct Filler<'a> {
    /// Where values are looked up, in order.
    sources: &'a [&'a [(Node, Node)]],
    used: &'a mut BTreeSet<String>,
    /// What may still be put in.
    left: &'a mut usize,
    /// Whether other names are left for later.
    is_open: bool,
}

impl Filler<'_> {
    fn fill(&mut self, node: &mut Node) -> Result<(), ScenarioError> {
        match &mut node.content {
            Content::List(items) => {
                for mut item in std::mem::take(items) {
                    let was_text = item.text().is_some();
                    self.fill(&mut item)?;
                    // A list in place of an item is its items.
                    match item.content {
                        Content::List(more) if was_text => items.extend(more),
                        content => items.push(Node { line: item.line, content }),
                    }
                }
                return Ok(());
            }
            Content::Map(entries) => {
                for (key, value) in entries {
                    self.fill(key)?;
                    if key.text().is_none() {
                        return Err(key.error("a key is a text"));
                    }
                    self.fill(value)?;
                }
                return Ok(());
            }
            Content::Scalar { .. } => {}
        }
        let Content::Scalar { text, .. } = &node.content else { return Ok(()) };
        if !text.contains("{{") {
            return Ok(());
        }
        // A value that is nothing but a parameter is whatever that is.
        if let Some(name) = text.strip_prefix("{{").and_then(|t| t.strip_suffix("}}")).filter(|n| is_name(n))
        {
            if let Some(value) = self.value(&node.line, name)? {
                node.content = value.content.clone();
            }
            return Ok(());
        }
        let (mut out, mut rest) = (String::new(), text.as_str());
        while let Some((before, after)) = rest.split_once("{{") {
            out.push_str(before);
            let inside = after.split_once("}}").filter(|(name, _)| is_name(name));
            let Some((name, behind)) = inside else {
                out.push_str("{{");
                rest = after;
                continue;
            };
            match self.value(&node.line, name)? {
                None => out.push_str(&format!("{{{{{name}}}}}")),
                Some(value) => match value.text() {
                    Some(text) => out.push_str(text),
                    None => {
                        return Err(node.error(format!("{name} is a list, which cannot stand within a text")));
                    }
                },
            }
            rest = behind;
        }
        out.push_str(rest);
        node.content = Content::Scalar { text: out, plain: false };
        Ok(())
    }

    fn value(&mut self, line: &Line, name: &str) -> Result<Option<&Node>, ScenarioError> {
        let all = || self.sources.iter().flat_map(|source| source.iter());
        let found = all().find(|(key, _)| key.text() == Some(name));
        if let Some((_, value)) = found {
            self.used.insert(name.to_owned());
            let Some(left) = self.left.checked_sub(value.weight()) else {
                let what = "the parameters make the scenario too large".into();
                return Err(ScenarioError { line: line.clone(), what });
            };
            *self.left = left;
            return Ok(Some(value));
        }
        if self.is_open {
            return Ok(None);
        }
        let meant = nearest::name(name, all().filter_map(|(key, _)| key.text()));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean {{{{{meant}}}}}?"));
        Err(ScenarioError {
            line: line.clone(),
            what: format!("there is no parameter {{{{{name}}}}}{meant}"),
        })
    }
}
