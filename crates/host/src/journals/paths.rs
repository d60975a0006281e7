//! Where journals are: patterns of paths, and the files that fit them.

use std::path::{Path, PathBuf};

use super::Program;

/// Entries of a folder that are looked at, and paths that are kept.
const ENTRIES: usize = 4096;
const FOUND: usize = 64;
/// Of several folders that fit a pattern, so many are followed, the last ones by name: they are
/// named after dates.
const NEWEST: usize = 3;

/// Fills a path's variables in: `{NAME:other}` is the program's environment variable, or else the
/// other text, in which `~` is the home folder.
fn with_environment(path: &str, program: &Program) -> Option<String> {
    let home = program.environment.get("HOME").filter(|home| home.starts_with('/'));
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        filled.push_str(before);
        match name.split_once(':') {
            Some((name, other)) => match program.environment.get(name).filter(|value| !value.is_empty()) {
                Some(value) => filled.push_str(value),
                None => filled.push_str(&other.replacen('~', home?, 1)),
            },
            None => {
                filled.push('{');
                filled.push_str(name);
                filled.push('}');
            }
        }
        rest = behind;
    }
    filled.push_str(rest);
    // A relative path would be one of this process's own folder.
    filled.starts_with('/').then_some(filled)
}

/// The files that a path's pattern fits. `{pid}` is each process of the program, `{id}` the
/// conversation.
pub(super) fn find(path: &str, program: &Program, id: Option<&str>) -> Vec<PathBuf> {
    let Some(path) = with_environment(path, program) else { return Vec::new() };
    let path = match (path.contains("{id}"), id.filter(|id| is_name(id))) {
        (true, None) => return Vec::new(),
        (_, id) => path.replace("{id}", id.unwrap_or_default()),
    };
    if !path.contains("{pid}") {
        return matching(&path);
    }
    program.pids.iter().flat_map(|pid| matching(&path.replace("{pid}", &pid.to_string()))).collect()
}

/// Whether a text is the name of one file and leads nowhere else.
fn is_name(id: &str) -> bool {
    !id.is_empty() && id.len() < 200 && !id.contains(['/', '*', '\0']) && id != ".." && id != "."
}

/// The files that fit a pattern in which `*` stands for any part of a name.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = vec![PathBuf::from("/")];
    for (at, part) in parts.iter().enumerate() {
        if !part.contains('*') {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        // A folder is as good as another where the rest of the path says whether it is the one.
        let more = parts[at + 1..].iter().any(|part| part.contains('*'));
        found = found.iter().flat_map(|folder| entries(folder, part, more)).collect();
    }
    found.retain(|path| path.is_file());
    found.truncate(FOUND);
    found
}

fn entries(folder: &Path, pattern: &str, newest: bool) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES);
    let mut names: Vec<String> = all.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| fits(name, pattern));
    names.sort_unstable();
    let skip = if newest { names.len().saturating_sub(NEWEST) } else { 0 };
    names.iter().skip(skip).rev().map(|name| folder.join(name)).collect()
}

/// Whether a name fits a pattern.
fn fits(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        for file in
            ["logs/2025/12/31/a.jsonl", "logs/2026/01/02/b.jsonl", "logs/2026/01/02/b.txt", "s/7.json"]
        {
            let path = home.join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        let home = home.to_str().expect("text");
        let environment = [("HOME", home), ("LOGS", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let program = Program { pids: vec![6, 7], environment: environment.into(), ..Program::default() };
        let found = |path: &str, id: Option<&str>| {
            let all = find(path, &program, id).into_iter();
            all.map(|p| p.to_str().expect("text").trim_start_matches(home).to_owned()).collect::<Vec<_>>()
        };
        let logs = ["/logs/2026/01/02/b.jsonl", "/logs/2025/12/31/a.jsonl"];
        assert_eq!(found("{LOGS:~/logs}/*/*/*/*.jsonl", None), logs);
        assert_eq!(found("{HOME:~}/s/{pid}.json", None), ["/s/7.json"]);
        assert_eq!(found("{X:~}/logs/2026/*/02/{id}.jsonl", Some("b")), [logs[0]]);
        for (path, id) in [
            ("{X:~}/logs/{id}.jsonl", None),
            ("{X:~}/logs/{id}.jsonl", Some("../s/7")),
            ("logs/*/b.jsonl", None),
            ("{X:~}/{unclosed", None),
            ("{X:~}/s/*.jsonl", None),
        ] {
            assert_eq!(found(path, id), [""; 0], "{path}");
        }
    }

    #[test]
    fn a_star_is_any_part_of_a_name() {
        for (name, pattern, wanted) in [
            ("rollout-1.jsonl", "rollout-*.jsonl", true),
            ("rollout-.jsonl", "rollout-*.jsonl", true),
            ("rollout-1.json", "rollout-*.jsonl", false),
            ("abc", "*", true),
            ("abc", "a*b*c", true),
            ("acb", "a*b*c", false),
            ("abc", "abc", true),
            ("abcd", "abc", false),
        ] {
            assert_eq!(fits(name, pattern), wanted, "{name} {pattern}");
        }
    }
}
