//! Markdown: links lead somewhere, prose is narrow and names the actor, and the manual's sentences
//! are short.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{WIDTH, is_vague};

/// The longest sentence of the manual, in words.
const SENTENCE: usize = 30;

/// The most lines of README.md.
const README: usize = 150;

/// Checks the links and the prose of all pages, and the sentences of the manual.
pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let mut pages = BTreeMap::new();
    for file in pages_below(root)? {
        let text = fs::read_to_string(&file)?;
        pages.insert(file, text);
    }
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|(file, text)| (file.as_path(), anchors(text))).collect();
    for (file, text) in &pages {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        for (line, link) in links(text) {
            if let Some(why) = broken(file, &link, &anchors) {
                faults.push(format!("{name}:{line}: the link {link:?} leads nowhere: {why}"));
            }
        }
        check_prose(&name, text, faults);
        let manual = name.starts_with("docs/") || name == "README.md";
        if manual {
            check_sentences(&name, text, faults);
        }
        if name == "README.md" && text.lines().count() > README {
            faults.push(format!("{name}: more than {README} lines"));
        }
    }
    Ok(())
}

/// The Markdown files of the project.
fn pages_below(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)?.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The lines of a page outside of fenced blocks and comments, with their numbers. A line inside
/// is given as an empty one, so that paragraphs end there.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let mut comment = false;
    text.lines().enumerate().map(move |(n, line)| {
        let fence = line.trim_start().starts_with("```");
        let opens = !fenced && line.trim_start().starts_with("<!--");
        let inside = fenced || fence || comment || opens;
        fenced ^= fence;
        comment = (comment || opens) && !line.contains("-->");
        (n + 1, if inside { "" } else { line })
    })
}

/// Replaces code spans by as many letters as they have characters: they are one word.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts
        .map(|(n, part)| if n % 2 == 1 { "x".repeat(part.chars().count()) } else { part.to_owned() })
        .collect()
}

/// The targets of links and pictures, with their lines.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, line) in prose(text) {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split([')', ' ']).next().unwrap_or_default();
            found.push((n, target.to_owned()));
        }
        for attribute in ["src=\"", "srcset=\"", "href=\""] {
            for (at, _) in line.match_indices(attribute) {
                let target = line[at + attribute.len()..].split('"').next().unwrap_or_default();
                found.push((n, target.to_owned()));
            }
        }
    }
    found
}

/// Says why a link leads nowhere. Addresses elsewhere are not looked at.
fn broken(page: &Path, link: &str, anchors: &BTreeMap<&Path, BTreeSet<String>>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { page.to_owned() } else { join(page.parent()?, file) };
    if !target.exists() {
        return Some("there is no such file".to_owned());
    }
    let anchor = anchor?;
    let known = anchors.get(target.as_path())?;
    (!known.contains(anchor)).then(|| "there is no such heading".to_owned())
}

/// Joins a relative path, with `..` taken out.
fn join(folder: &Path, file: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in file.split('/') {
        match part {
            ".." => drop(path.pop()),
            "." => {}
            part => path.push(part),
        }
    }
    path
}

/// The anchors of a page's headings, as forges and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|n| format!("{slug}-{n}"));
        let mut free = std::iter::once(slug.clone()).chain(again).filter(|slug| !found.contains(slug));
        let free = free.next();
        found.extend(free);
    }
    found
}

/// Reports lines that are too wide, and vague words.
fn check_prose(name: &str, text: &str, faults: &mut Vec<String>) {
    for (n, line) in prose(text) {
        if is_vague(line) {
            faults.push(format!("{name}:{n}: a vague word: name the actor"));
        }
        // Tables, links and headings cannot be wrapped.
        let fixed = line.starts_with(['|', '#']) || !line.trim().contains(' ') || line.contains("](");
        if line.chars().count() > WIDTH && !fixed {
            faults.push(format!("{name}:{n}: wider than {WIDTH} columns"));
        }
    }
}

/// Reports long sentences.
fn check_sentences(name: &str, text: &str, faults: &mut Vec<String>) {
    for (n, sentence) in sentences(text) {
        let words = sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        if words > SENTENCE {
            faults.push(format!("{name}:{n}: a sentence of {words} words, at most {SENTENCE}"));
        }
    }
}

/// The sentences of paragraphs and list items, with the line where each begins.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut current = String::new();
    let mut start = 0;
    for (n, line) in prose(text).chain([(0, "")]) {
        let line = without_code(line);
        let line = line.trim_start();
        let item = ["- ", "* "].iter().any(|mark| line.starts_with(mark))
            || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        let apart = line.is_empty() || line.starts_with(['|', '#', '>', '<']);
        if item || apart {
            found.push((start, std::mem::take(&mut current)));
        }
        if apart {
            continue;
        }
        for word in line.split_whitespace() {
            if current.is_empty() {
                start = n;
            }
            current.push_str(word);
            current.push(' ');
            let bare = word.trim_end_matches([')', '"', '*', '_']);
            let abbreviated = ["e.g.", "i.e.", "etc."].contains(&bare);
            if bare.ends_with(['.', '?', '!', ':', ';']) && !abbreviated {
                found.push((start, std::mem::take(&mut current)));
            }
        }
    }
    found.retain(|(_, sentence)| !sentence.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_anchors() {
        let text = "# One two\n## `rec` & play, again\n## One two\n```sh\n# no\n```\n";
        let wanted = ["one-two", "one-two-1", "rec--play-again"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(wanted));
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md#c) `[x](y)` ![d](e.svg)\n```sh\n[f](g)\n```\n<img src=\"h.svg\">\n";
        let found: Vec<String> = links(text).into_iter().map(|(_, link)| link).collect();
        assert_eq!(found, ["b.md#c", "e.svg", "h.svg"]);
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = folder.join("src/page.md");
        let target = folder.join("Cargo.toml");
        let anchors = BTreeMap::from([(target.as_path(), BTreeSet::from(["one".to_owned()]))]);
        for (link, good) in [
            ("../Cargo.toml#one", true),
            ("../Cargo.toml#two", false),
            ("../no.md", false),
            ("https://x", true),
        ] {
            assert_eq!(broken(&page, link, &anchors).is_none(), good, "{link}");
        }
    }

    #[test]
    fn long_sentences_and_vague_words_are_faults() {
        let long = "word ".repeat(SENTENCE + 1);
        let text = format!("{long}.\n\nWhoever reads.\n\n- `{long}` is one word.\n- one\n- two\n");
        let mut faults = Vec::new();
        check_prose("a.md", &text, &mut faults);
        check_sentences("a.md", &text, &mut faults);
        let places: Vec<_> = faults.iter().filter_map(|fault| fault.split(' ').next()).collect();
        assert_eq!(places, ["a.md:1:", "a.md:3:", "a.md:5:", "a.md:1:"]);
    }
}
