//! The mouse of a program under test, encoded as the program asked for it.

use std::time::Duration;

use tapdeck_core::check::{Condition, Fact};
use tapdeck_tape::scenario::{Click, Drag, Scroll, Target};
use tapdeck_term::keys::{self, Button, Mods, MouseEvent, MouseKind};

use super::session::Session;
use super::{AtCaller, TestResult};

/// The size of a cell, as the terminal tells it a program that asks; mode 1016 counts in pixels.
const CELL: (u16, u16) = (10, 20);
/// Cells of a drag that are reported one by one.
const LONGEST_WAY: i32 = 1000;

impl Session {
    /// Clicks with the left button on the middle of a text, once it is on the screen.
    ///
    /// # Errors
    /// When the text does not come or is there more than once, or the program wants no mouse.
    #[track_caller]
    pub fn click(&mut self, text: &str) -> TestResult {
        let click =
            Click { at: Target::Text(text.into(), None), button: Button::Left, times: 1, mods: Mods::NONE };
        self.click_on(&click, self.patience()).at_caller()
    }

    /// Clicks as a scenario says it.
    ///
    /// # Errors
    /// As [`Session::click`].
    #[track_caller]
    pub fn click_on(&mut self, click: &Click, limit: Duration) -> TestResult {
        let at = self.locate(&click.at, limit).at_caller()?;
        for _ in 0..click.times {
            self.mouse(MouseKind::Press(click.button), at, click.mods).at_caller()?;
            self.mouse(MouseKind::Release(click.button), at, click.mods).at_caller()?;
        }
        Ok(())
    }

    /// Drags from one place to another: press, the motion cell by cell, release.
    ///
    /// # Errors
    /// As [`Session::click`].
    #[track_caller]
    pub fn drag_along(&mut self, drag: &Drag, limit: Duration) -> TestResult {
        let from = self.locate(&drag.from, limit).at_caller()?;
        let to = self.locate(&drag.to, limit).at_caller()?;
        self.mouse(MouseKind::Press(drag.button), from, drag.mods).at_caller()?;
        for at in way(from, to) {
            self.mouse(MouseKind::Move(Some(drag.button)), at, drag.mods).at_caller()?;
        }
        self.mouse(MouseKind::Release(drag.button), to, drag.mods).at_caller()
    }

    /// Turns the wheel.
    ///
    /// # Errors
    /// As [`Session::click`].
    #[track_caller]
    pub fn scroll_by(&mut self, scroll: &Scroll, limit: Duration) -> TestResult {
        let size = self.size();
        let at = match &scroll.at {
            Some(at) => self.locate(at, limit).at_caller()?,
            None => (size.rows / 2, size.cols / 2),
        };
        for _ in 0..scroll.notches {
            self.mouse(MouseKind::Press(scroll.wheel), at, scroll.mods).at_caller()?;
        }
        Ok(())
    }

    /// Sends a mouse event at a row and column, both from 0. What the program did not ask for, such
    /// as motion, is left out; a press that it did not ask for is an error.
    ///
    /// # Errors
    /// When the program has ended or wants no mouse.
    #[track_caller]
    pub fn mouse(&mut self, kind: MouseKind, (row, col): (u16, u16), mods: Mods) -> TestResult {
        let pixel = |cell: u16, size: u16| cell.saturating_mul(size).saturating_add(size / 2);
        let (x, y) = (pixel(col, CELL.0), pixel(row, CELL.1));
        let bytes = keys::mouse(MouseEvent { kind, col, row, x, y, mods }, &self.modes());
        if bytes.is_empty() && matches!(kind, MouseKind::Press(_)) {
            let modes = "it has set none of the modes 1000, 1002 and 1003, or the cell is out of their reach";
            return Err(self.wrong(format!("the program does not ask for mouse events: {modes}")))
                .at_caller();
        }
        self.write(bytes).at_caller()
    }

    /// The row and column of a target.
    fn locate(&mut self, target: &Target, limit: Duration) -> TestResult<(u16, u16)> {
        let size = self.size();
        let (text, row) = match target {
            Target::Cell { row, col } if *row < size.rows && *col < size.cols => return Ok((*row, *col)),
            Target::Text(text, row) => (text, *row),
            _ => return Err(self.wrong(format!("{target} is outside of the screen, which is {size}"))),
        };
        let mut shown = Condition { facts: vec![Fact::Contains(text.clone())], ..Condition::default() };
        if let Some(row) = row {
            (shown.look.region.top, shown.look.region.bottom) = (row, row);
        }
        self.expect_within(&shown, limit)?;
        let spots = shown.spots(&self.frame());
        match spots[..] {
            [spot] => Ok((spot.row, spot.col + spot.width.saturating_sub(1) / 2)),
            [] => Err(self.wrong(format!("{target} goes over two rows: name a part of it"))),
            [first, ..] => {
                let rows: Vec<String> = spots.iter().map(|s| (s.row + 1).to_string()).collect();
                let rows = rows.join(", ");
                let hint = if first.row == spots[spots.len() - 1].row { "say more of it" } else { "add row" };
                Err(self.wrong(format!("{target} is there {} times, in rows {rows}: {hint}", spots.len())))
            }
        }
    }
}

/// The cells between two, the last included.
fn way(from: (u16, u16), to: (u16, u16)) -> impl Iterator<Item = (u16, u16)> {
    let (rows, cols) = (i32::from(to.0) - i32::from(from.0), i32::from(to.1) - i32::from(from.1));
    let steps = rows.abs().max(cols.abs()).min(LONGEST_WAY);
    let along = move |start: u16, length: i32, i: i32| {
        u16::try_from(i32::from(start) + length * i / steps).unwrap_or(start)
    };
    (1..=steps).map(move |i| (along(from.0, rows, i), along(from.1, cols, i)))
}
