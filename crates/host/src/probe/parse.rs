//! Reading a panel: rows of text to windows, models and levels.

use serde::{Deserialize, Serialize};
use tapdeck_tape::cassette::QuotaWindow;

use super::flow::{Agent, Probe, Window};

/// From this share on a window counts as used up.
const BLOCKED_PERCENT: f64 = 95.0;

/// What came of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The facts were read.
    Ok,
    /// No user is signed in.
    Unauthenticated,
    /// The agent is not there, or does not tell.
    Unavailable,
    /// It could not be found out.
    Error,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Unauthenticated => "unauthenticated",
            Self::Unavailable => "unavailable",
            Self::Error => "error",
        })
    }
}

/// What a panel showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Windows of a quota.
    pub windows: Vec<QuotaWindow>,
    /// Kind of account.
    pub plan: Option<String>,
    /// Models.
    pub models: Vec<String>,
    /// Levels of effort.
    pub reasoning: Vec<String>,
}

impl Facts {
    /// Reads rows.
    pub(super) fn read(probe: &Probe, rows: &[String]) -> Self {
        let mut facts = Self::default();
        for window in &probe.windows {
            facts.windows.extend(read_window(probe, window, rows));
        }
        let first = |p: &super::flow::Pattern, row: &String| {
            p.captures(row).and_then(|c| c.get(1)).map(|m| m.as_str().trim().to_owned())
        };
        if let Some(plan) = &probe.plan {
            facts.plan = rows.iter().find_map(|row| first(plan, row)).map(|p| p.to_lowercase());
        }
        let add = |list: &mut Vec<String>, text: String| {
            if !text.is_empty() && !list.contains(&text) {
                list.push(text);
            }
        };
        for row in rows {
            for pattern in &probe.models {
                for found in pattern.captures_iter(row) {
                    add(&mut facts.models, found.get(1).map_or("", |m| m.as_str()).trim().to_owned());
                }
            }
            if let Some(level) = probe.reasoning_rows.as_ref().and_then(|p| first(p, row)) {
                add(&mut facts.reasoning, level.to_lowercase());
            }
        }
        if let Some(pattern) = &probe.reasoning {
            // Help texts are wrapped: the list may go on in the next row.
            let joined = rows.iter().map(|r| r.trim()).collect::<Vec<_>>().join(" ");
            if let Some(list) = first(pattern, &joined) {
                list.split([',', '|'])
                    .for_each(|l| add(&mut facts.reasoning, l.trim().trim_matches('"').to_owned()));
            }
        }
        facts
    }

    /// Takes in what another look at the panel showed.
    pub(super) fn merge(&mut self, other: Self) {
        if !other.windows.is_empty() {
            self.windows = other.windows;
        }
        self.plan = other.plan.or(self.plan.take());
        for (list, more) in [(&mut self.models, other.models), (&mut self.reasoning, other.reasoning)] {
            for text in more {
                if !list.contains(&text) {
                    list.push(text);
                }
            }
        }
    }

    /// What is needed and not there.
    pub(super) fn missing<'a>(&self, probe: &'a Probe) -> Vec<&'a str> {
        let has = |need: &str| match need {
            "plan" => self.plan.is_some(),
            // Any: which there are depends on the account.
            "windows" => !self.windows.is_empty(),
            "models" => !self.models.is_empty(),
            "reasoning" => !self.reasoning.is_empty(),
            id => self.windows.iter().any(|w| w.limit_id == id),
        };
        probe.needs.iter().map(String::as_str).filter(|need| !has(need)).collect()
    }
}

fn read_window(probe: &Probe, window: &Window, rows: &[String]) -> Option<QuotaWindow> {
    let at = rows.iter().position(|row| window.header.is_match(row))?;
    // Up to the next window's header, or its figures would be taken for this one's.
    let below = rows.iter().enumerate().skip(at).take(probe.reach + 1);
    let own = |i: usize, row: &str| i == at || !probe.windows.iter().any(|w| w.header.is_match(row));
    let rows: Vec<&String> = below.take_while(|(i, row)| own(*i, row)).map(|(_, row)| row).collect();
    let number = |pattern: &super::flow::Pattern| {
        rows.iter().find_map(|row| {
            let text = pattern.captures(row)?.get(1)?.as_str().trim().to_owned();
            // `<1%` is not nothing.
            let text = text.strip_prefix('<').map_or(text.as_str(), str::trim).to_owned();
            text.parse::<f64>().ok().filter(|n| (0.0..=1000.0).contains(n))
        })
    };
    let used = probe.used.as_ref().and_then(&number);
    let used = used.or_else(|| probe.left.as_ref().and_then(&number).map(|left| (100.0 - left).max(0.0)))?;
    let resets = probe.resets.as_ref().and_then(|pattern| {
        rows.iter().find_map(|row| Some(pattern.captures(row)?.get(1)?.as_str().trim().to_owned()))
    });
    Some(QuotaWindow {
        name: window.name.clone(),
        limit_id: window.id.clone(),
        window_minutes: window.minutes,
        used_percent: Some(used),
        resets_at: resets,
        state: if used.ceil() >= BLOCKED_PERCENT { "blocked" } else { "ok" }.into(),
    })
}

/// What the rows say of why there is nothing to read.
pub(super) fn sign(agent: &Agent, rows: &[String]) -> Option<(Status, String)> {
    agent.sign.iter().find_map(|sign| {
        let row = rows.iter().find(|row| {
            sign.any.iter().any(|p| p.is_match(row)) && !sign.but.iter().any(|p| p.is_match(row))
        })?;
        Some((sign.status, row.trim_matches(|c: char| c.is_whitespace() || "│┃|".contains(c)).to_owned()))
    })
}
