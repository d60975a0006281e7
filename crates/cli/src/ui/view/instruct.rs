//! The box behind a line: an instruction to an agent from that line on. It goes with the
//! snapshot nearest to that line, is kept in the recording, and can be handed to a command of the
//! user that branches the session.

use std::path::Path;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, BorderType, Widget};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use tapdeck_core::WallTime;
use tapdeck_tape::{Branch, Instruction, Moment};
use unicode_width::UnicodeWidthStr;

use super::rows::Row;
use crate::human::shortened;
use crate::ui::styles::Styles;

/// The longest text, in bytes.
const MAX_TEXT: usize = tapdeck_core::MAX_INSTRUCTION;
/// Rows of text that are shown at once.
const ROWS: u16 = 8;

/// A box that is open.
pub(super) struct Instruct {
    /// The row it stands behind.
    pub(super) row: Row,
    /// That row's last write.
    pub(super) anchor: u64,
    /// The snapshot nearest to it.
    pub(super) snapshot: Option<Moment>,
    /// The instruction that is changed, and the row where it was.
    old: Option<(Instruction, Row)>,
    text: TextArea<'static>,
}

/// The action of a key in the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoxAction {
    /// Nothing.
    Nothing,
    /// Close the box.
    Close,
    /// Keep the instruction.
    Submit,
    /// Move the box by a number of rows.
    Move(i64),
    /// Refuse text that is too long.
    TooLong,
}

impl Instruct {
    /// A box behind a row: empty, or with the text of the instruction that is there.
    pub(super) fn new(
        row: Row,
        anchor: u64,
        snapshot: Option<Moment>,
        old: Option<Instruction>,
        styles: Styles,
    ) -> Self {
        let mut text = match &old {
            Some(old) => TextArea::from(old.text.lines()),
            None => TextArea::default(),
        };
        text.move_cursor(CursorMove::Bottom);
        text.move_cursor(CursorMove::End);
        text.set_wrap_mode(WrapMode::WordOrGlyph);
        text.set_cursor_line_style(Style::new());
        text.set_placeholder_text("What should be done differently from here on?");
        text.set_placeholder_style(styles.faint());
        Self { row, anchor, snapshot, old: old.map(|old| (old, row)), text }
    }

    /// Handles a key or a paste.
    pub(super) fn input(&mut self, event: &Event) -> BoxAction {
        match event {
            Event::Key(key) => self.key(*key),
            Event::Paste(text) => {
                if self.len() + text.len() > MAX_TEXT {
                    return BoxAction::TooLong;
                }
                self.text.insert_str(text.replace("\r\n", "\n").replace('\r', "\n"));
                BoxAction::Nothing
            }
            _ => BoxAction::Nothing,
        }
    }

    fn key(&mut self, key: KeyEvent) -> BoxAction {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return BoxAction::Close,
            KeyCode::Char('c' | 'g') if ctrl => return BoxAction::Close,
            KeyCode::Enter if !alt && !ctrl => return BoxAction::Submit,
            KeyCode::Up if alt || ctrl => return BoxAction::Move(-1),
            KeyCode::Down if alt || ctrl => return BoxAction::Move(1),
            KeyCode::Enter => self.text.insert_newline(),
            KeyCode::Char('j') if ctrl => self.text.insert_newline(),
            _ if self.len() >= MAX_TEXT && matches!(key.code, KeyCode::Char(_)) => return BoxAction::TooLong,
            _ => {
                self.text.input(key);
            }
        }
        BoxAction::Nothing
    }

    fn len(&self) -> usize {
        self.text.lines().iter().map(|line| line.len() + 1).sum()
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        self.text.lines().join("\n").trim().to_owned()
    }

    /// The instruction as it is kept; `None` when nothing was written or changed.
    pub(super) fn instruction(&self, written: WallTime) -> Option<Instruction> {
        let text = self.text();
        let deleted = text.is_empty();
        let new = Instruction {
            id: written.as_nanos(),
            deleted,
            written,
            anchor_byte: self.anchor,
            line: Some(self.row),
            snapshot: self.snapshot.as_ref().and_then(Branch::of),
            text,
        };
        match &self.old {
            None => Some(new).filter(|_| !deleted),
            Some((old, row)) if *row == self.row || deleted => {
                let changed = Instruction { deleted, written, text: new.text, ..old.clone() };
                Some(changed).filter(|changed| changed.text != old.text)
            }
            Some((old, _)) => Some(Instruction { id: old.id, ..new }),
        }
    }

    /// Whether an instruction is changed, and none is added.
    pub(super) fn changes(&self) -> bool {
        self.old.is_some()
    }

    /// The rows that the box needs, with its border.
    pub(super) fn height(&self, width: u16) -> u16 {
        let inner = usize::from(width.saturating_sub(2).max(1));
        let rows = |line: &String| unicode_width::UnicodeWidthStr::width(line.as_str()) / inner + 1;
        let rows: usize = self.text.lines().iter().map(rows).sum();
        (rows.min(usize::from(ROWS)) as u16).max(2) + 2
    }

    /// Draws the box.
    pub(super) fn draw(&self, buf: &mut Buffer, area: Rect, branches: bool, styles: Styles) {
        let room = usize::from(area.width.saturating_sub(4));
        let title = match &self.snapshot {
            Some(moment) => format!("Instruction from {}", name_of(moment)),
            None => "Instruction (no snapshot to branch from)".to_owned(),
        };
        let does = if branches && self.snapshot.is_some() { "keep, branch" } else { "keep" };
        let does = if self.changes() && self.text().is_empty() { "delete" } else { does };
        // The keys that matter most are in every width.
        let all = [format!("Enter {does}"), "Esc drop".into(), "Alt-Enter line".into(), "Alt-↑↓ move".into()];
        let keys = (1..=all.len()).rev().map(|n| all[..n].join(" · ")).find(|keys| keys.width() <= room);
        let keys = keys.unwrap_or_default();
        let block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(styles.instruction())
            .title(format!(" {} ", shortened(&title, room)))
            .title_bottom(format!(" {keys} "));
        let inner = block.inner(area);
        block.render(area, buf);
        (&self.text).render(inner, buf);
    }
}

/// An instruction in words.
pub(super) fn summary_of(instruction: &Instruction) -> String {
    format!("instruction “{}”", shortened(&instruction.text.replace('\n', " "), 60))
}

/// A snapshot in words.
pub(super) fn name_of(moment: &Moment) -> String {
    match (moment.snapshot_id(), moment.label.is_empty()) {
        (Some(id), true) => format!("snapshot {id}"),
        (Some(id), false) => format!("snapshot {id} “{}”", moment.label),
        (None, _) => format!("marker “{}”", moment.label),
    }
}

/// What a command runs, in a word or two: the name of its program, and of its part.
pub(super) fn program_of(command: &[String]) -> String {
    let mut words = command.iter().map(String::as_str);
    let program = Path::new(words.next().unwrap_or_default());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let part = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    part.map_or_else(|| program.clone().into_owned(), |part| format!("{program} {part}"))
}

/// The user's command with its places filled in. There is no shell in between, so nothing in the
/// text is interpreted.
pub(super) fn branch_command(
    template: &[String],
    recording: &Path,
    instruction: &Instruction,
) -> Vec<String> {
    let snapshot = instruction.snapshot.as_ref();
    let fill = |part: &String| {
        let mut out = String::new();
        let mut rest = part.as_str();
        // In one pass, so that filled-in text is not replaced again.
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            rest = &rest[open..];
            let Some(close) = rest.find('}') else { break };
            match &rest[1..close] {
                "recording" => out.push_str(&recording.to_string_lossy()),
                "snapshot" => out.push_str(&snapshot.map(|s| s.id.to_string()).unwrap_or_default()),
                "label" => out.push_str(snapshot.map_or("", |s| &s.label)),
                "anchor" => out.push_str(&snapshot.map_or(0, |s| s.anchor_byte).to_string()),
                "text" => out.push_str(&instruction.text),
                _ => out.push_str(&rest[..=close]),
            }
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        out
    };
    template.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_short_name() {
        let name = |words: &[&str]| program_of(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(name(&["/opt/bin/tapdeck", "branch", "{recording}", "--at"]), "tapdeck branch");
        assert_eq!(
            (name(&["go", "-s={snapshot}"]), name(&["sh"]), name(&[])),
            ("go".into(), "sh".into(), String::new())
        );
    }

    #[test]
    fn places_are_filled_in_once() {
        let template = ["go", "-s={snapshot}", "{text}", "{x}", "{", "{label}{anchor}"].map(String::from);
        let instruction = Instruction {
            id: 1,
            deleted: false,
            written: WallTime::ZERO,
            anchor_byte: 3,
            line: None,
            snapshot: Some(Branch { id: 42, anchor_byte: 9, label: "cp".into() }),
            text: "rm {recording}; $(x)".into(),
        };
        assert_eq!(
            branch_command(&template, Path::new("a.ahr"), &instruction),
            ["go", "-s=42", "rm {recording}; $(x)", "{x}", "{", "cp9"]
        );
    }
}
