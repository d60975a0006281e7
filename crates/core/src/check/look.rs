//! Which part of the screen is compared, and how: a region, masks over what may differ, and
//! normalisation.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::frame::{Frame, Row};
use super::normalise::Normaliser;

/// A rectangle of the screen, rows and columns counted from 0, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The first row.
    pub top: u16,
    /// The last row.
    pub bottom: u16,
    /// The first column.
    pub left: u16,
    /// The last column.
    pub right: u16,
}

impl Region {
    /// All of the screen.
    pub const ALL: Self = Self { top: 0, bottom: u16::MAX, left: 0, right: u16::MAX };

    /// Whether all of the screen is meant.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    fn has_row(&self, y: usize) -> bool {
        (usize::from(self.top)..=usize::from(self.bottom)).contains(&y)
    }

    fn cuts_columns(&self) -> bool {
        self.left > 0 || self.right < u16::MAX
    }
}

/// In words, counted from 1: `rows 2 to 3, columns 1 to 10`.
impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stretch = |f: &mut fmt::Formatter<'_>, what: &str, first: u16, last: u16| {
            let (first, end) = (u32::from(first) + 1, u32::from(last) + 1);
            match (first == end, last == u16::MAX) {
                (true, _) => write!(f, "{what} {first}"),
                (_, true) => write!(f, "{what}s from {first}"),
                _ => write!(f, "{what}s {first} to {end}"),
            }
        };
        let rows = self.top > 0 || self.bottom < u16::MAX;
        if rows {
            stretch(f, "row", self.top, self.bottom)?;
        }
        if self.cuts_columns() {
            f.write_str(if rows { ", " } else { "" })?;
            return stretch(f, "column", self.left, self.right);
        }
        if rows { Ok(()) } else { f.write_str("the screen") }
    }
}

/// What stands for a masked cell.
const MASK: char = '▒';

/// How to look at a frame.
#[derive(Clone, Debug)]
pub struct Look {
    /// The part to look at.
    pub region: Region,
    /// Parts of the screen to ignore.
    pub masks: Vec<Region>,
    /// What to make equal first.
    pub normalise: Vec<Normaliser>,
}

impl Default for Look {
    fn default() -> Self {
        Self { region: Region::ALL, masks: Vec::new(), normalise: Vec::new() }
    }
}

impl Look {
    /// The rows to compare, with the screen row that each comes from.
    pub(crate) fn rows<'a>(&self, frame: &'a Frame) -> Vec<(u16, Cow<'a, str>)> {
        let seen = frame.rows.iter().enumerate().filter(|(y, _)| self.region.has_row(*y));
        seen.map(|(y, row)| (y as u16, self.row(y, row))).collect()
    }

    /// The rows to compare, masked and normalised.
    pub fn shown(&self, frame: &Frame) -> Vec<String> {
        self.rows(frame).into_iter().map(|(_, row)| row.into_owned()).collect()
    }

    /// The rows to compare as one text, without the blank rows at the end.
    pub(crate) fn text<'a>(&self, frame: &'a Frame) -> Cow<'a, str> {
        let make = || join(self.rows(frame).iter().map(|(_, row)| &**row));
        let plain = self.region == Region::ALL && self.masks.is_empty();
        match plain.then(|| frame.joined.get(&self.key(), make)).flatten() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(join(self.rows(frame).iter().map(|(_, row)| &**row))),
        }
    }

    /// The rules, as the key of what they make of a text.
    fn key(&self) -> Vec<usize> {
        self.normalise.iter().map(Normaliser::key).collect()
    }

    /// The rows, joined where the terminal wrapped a line, to look for text
    /// that may be wrapped. `None` when that makes no difference.
    pub(crate) fn unwrapped(&self, frame: &Frame) -> Option<String> {
        let rows = frame.rows.iter().enumerate().filter(|(y, _)| self.region.has_row(*y));
        if self.region.cuts_columns() || !rows.clone().any(|(_, r)| r.wrapped()) {
            return None;
        }
        let mut text = String::new();
        for (y, row) in rows {
            text.push_str(&self.row(y, row));
            if !row.wrapped() {
                text.push('\n');
            }
        }
        Some(text)
    }

    /// Whether a text is to be seen, over wrapped lines too. Rows go on as blanks to their end, so
    /// a text may end in some where the row does.
    pub(crate) fn shows(&self, frame: &Frame, text: &str) -> bool {
        self.times(frame, text) > 0
    }

    /// How often it is.
    pub(crate) fn times(&self, frame: &Frame, text: &str) -> usize {
        let lines: Vec<&str> = text.split('\n').collect();
        let last = lines.len() - 1;
        let trimmed = lines.iter().enumerate().map(|(i, l)| if i < last { l.trim_end() } else { l });
        let wanted = trimmed.collect::<Vec<_>>().join("\n");
        let bare = wanted.trim_end_matches(' ');
        let ends_row = |shown: &str| {
            let found = shown.match_indices(bare).filter(|_| bare.len() < wanted.len());
            found
                .filter(|(at, _)| matches!(shown[at + bare.len()..].chars().next(), None | Some('\n')))
                .count()
        };
        let times = |shown: &str| shown.matches(&wanted).count() + ends_row(shown);
        times(&self.text(frame)).max(self.unwrapped(frame).map_or(0, |t| times(&t)))
    }

    /// Whether a text that was not to be seen before is not to be seen now either, as far as the
    /// rows that changed can tell; `false` when all of it has to be looked at.
    pub(crate) fn still_lacks(&self, before: &Frame, now: &Frame, text: &str) -> bool {
        let simple = !text.is_empty() && !text.contains('\n') && !text.ends_with(' ');
        let whole = |frame: &Frame| !frame.rows.iter().any(|row| row.wrapped());
        let rows = before.rows.iter().zip(&now.rows).enumerate();
        let mut changed = rows.filter(|(y, (a, b))| self.region.has_row(*y) && !Arc::ptr_eq(a, b));
        simple
            && before.rows.len() == now.rows.len()
            && whole(now)
            && changed.all(|(y, (_, row))| !self.row(y, row).contains(text))
    }

    /// Whether two frames look the same, judged by the rows that they share.
    pub(crate) fn same_rows(&self, a: &Frame, b: &Frame) -> bool {
        a.rows.len() == b.rows.len()
            && a.rows
                .iter()
                .zip(&b.rows)
                .enumerate()
                .all(|(y, (a, b))| !self.region.has_row(y) || Arc::ptr_eq(a, b))
    }

    /// An expected text, treated as the screen is.
    pub(crate) fn expected(&self, text: &str) -> String {
        let rows = text.lines().enumerate().map(|(i, line)| {
            let whole = Row::from_text(line);
            // The text shows the region, so its first column is the region's.
            let mut out = line.to_owned();
            for mask in self.masks_of(usize::from(self.region.top) + i) {
                let shift = self.region.left;
                let (from, to) = (mask.left.saturating_sub(shift), mask.right.saturating_sub(shift));
                out = masked(&Row::from_text(&out), from, to.min(whole.width().saturating_sub(1)));
            }
            self.finish(out)
        });
        join(rows.collect::<Vec<_>>().iter().map(String::as_str))
    }

    /// The stretches of these columns that are looked at, the last column not included: inside of
    /// the region, and outside of the masks.
    pub(crate) fn columns(&self, y: usize, from: u16, to: u16) -> Vec<(u16, u16)> {
        let seen = |col: u16| {
            (self.region.left..=self.region.right).contains(&col)
                && !self.masks_of(y).any(|m| (m.left..=m.right).contains(&col))
        };
        let mut out: Vec<(u16, u16)> = Vec::new();
        for col in (from..to).filter(|col| seen(*col)) {
            match out.last_mut() {
                Some((_, end)) if *end == col => *end += 1,
                _ => out.push((col, col + 1)),
            }
        }
        out
    }

    fn masks_of(&self, y: usize) -> impl Iterator<Item = &Region> {
        self.masks.iter().filter(move |m| m.has_row(y))
    }

    fn row<'a>(&self, y: usize, row: &'a Row) -> Cow<'a, str> {
        let masks: Vec<&Region> = self.masks_of(y).collect();
        if masks.is_empty() && self.normalise.is_empty() {
            let text = row.slice(self.region.left, self.region.right.saturating_add(1));
            return Cow::Borrowed(text.trim_end());
        }
        if masks.is_empty()
            && !self.region.cuts_columns()
            && let Some(text) = row.normalised.get(&self.key(), || self.finish(row.text().to_owned()))
        {
            return Cow::Borrowed(text);
        }
        let mut covered = Cow::Borrowed(row);
        for mask in masks {
            let right = mask.right.min(covered.width().saturating_sub(1));
            covered = Cow::Owned(Row::from_text(&masked(&covered, mask.left, right)));
        }
        let text = covered.slice(self.region.left, self.region.right.saturating_add(1));
        Cow::Owned(self.finish(text.to_owned()))
    }

    fn finish(&self, mut text: String) -> String {
        for rule in &self.normalise {
            rule.apply(&mut text);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// The row with columns covered. Blanks stay blank, so that a mask over the end of a row hides how
/// long it was.
fn masked(row: &Row, left: u16, right: u16) -> String {
    if left > right || left >= row.width() {
        return row.text().to_owned();
    }
    let rest = row.slice(right.saturating_add(1), u16::MAX);
    let cover: String = if rest.trim().is_empty() {
        MASK.to_string()
    } else {
        std::iter::repeat_n(MASK, usize::from(right - left) + 1).collect()
    };
    format!("{}{cover}{rest}", row.slice(0, left))
}

fn join<'a>(rows: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut blank = 0;
    for (i, row) in rows.enumerate() {
        if i > 0 {
            blank += 1;
        }
        if !row.is_empty() {
            text.extend(std::iter::repeat_n('\n', blank));
            blank = 0;
            text.push_str(row);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tapdeck_term::Size;

    use super::super::frame::Screen;
    use super::super::timeline::{Pos, What};
    use super::*;

    fn frame(text: &str) -> Arc<Frame> {
        let mut screen = Screen::new(Size::new(20, 4));
        screen.advance(Pos::default(), &What::Output(Bytes::from(text.replace('\n', "\r\n"))));
        screen.frame()
    }

    #[test]
    fn regions_masks_and_normalisation() {
        let frame = frame("top 05:06:07\npid 12  ok\n漢字 end");
        let region = |top, bottom, left, right| Region { top, bottom, left, right };
        let mut look = Look { region: region(1, 2, 0, 5), ..Look::default() };
        assert_eq!(look.text(&frame), "pid 12\n漢字 e");
        look.region = Region::ALL;
        look.normalise = vec![Normaliser::named("clock").expect("there")];
        look.masks = vec![region(1, 1, 4, 6), region(2, 2, 5, 99)];
        assert_eq!(look.text(&frame), "top <clock>\npid ▒▒▒ ok\n漢字 ▒");
        assert_eq!(look.expected("top 23:59\npid 99  ok\n漢字 anything\n\n"), look.text(&frame));
        assert_eq!(look.expected(&look.text(&frame)), look.text(&frame), "a stored text stays what it is");
    }

    /// What was worked out for one set of rules must not be taken for another's, whatever came and
    /// went in between.
    #[test]
    fn what_is_remembered_is_remembered_by_its_rules() {
        let frame = frame("a1 b2");
        let look = |pattern: &str| {
            let rule = Normaliser::new("own", pattern, "*").expect("a pattern");
            Look { normalise: vec![rule], ..Look::default() }.text(&frame).into_owned()
        };
        assert_eq!(
            (look("a1").as_str(), look("b2").as_str(), look("[0-9]").as_str()),
            ("* b2", "a1 *", "a* b*")
        );
        assert_eq!(Look::default().text(&frame), "a1 b2");
    }

    /// A prompt ends in a blank, and `contains: "$ "` means that blank.
    #[test]
    fn a_text_may_end_in_blanks_where_the_row_does() {
        let frame = frame("one $\ntwo");
        let shows = |text: &str| Look::default().shows(&frame, text);
        assert!(shows("one $ ") && shows("$") && shows("$  \ntwo ") && shows("one $\ntwo"));
        assert!(!shows("one  $") && !shows("tw ") && !shows("$ \ntwo!") && !shows("on "));
    }

    #[test]
    fn wrapped_lines_are_one() {
        let frame = frame("0123456789012345678901234\nx");
        let look = Look::default();
        assert_eq!(look.unwrapped(&frame).as_deref(), Some("0123456789012345678901234\nx\n\n"));
        assert_eq!(look.text(&frame), "01234567890123456789\n01234\nx");
    }
}
