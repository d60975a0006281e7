//! Changing the size: rows move to and from scrollback, and wrapped lines of the main screen are
//! wrapped anew.

use super::{Machine, Pos};
use crate::grid::{Grid, RowMeta};
use crate::rewrap::Rewrap;
use crate::scrollback::Scrollback;
use crate::size::Size;

impl Machine {
    pub(crate) fn resize(&mut self, size: Size) {
        let size = size.clamped(self.settings.max_side);
        if size == self.size {
            return;
        }
        let (cols, rows) = (usize::from(size.cols), usize::from(size.rows));
        let alternate = self.modes.alternate();
        // Bring the main screen to the front while it is worked on.
        if alternate {
            std::mem::swap(&mut self.grid, &mut self.hidden);
        }
        let old = self.grid.cols;
        let main_pos = if alternate { self.saved[0].map_or(Pos::default(), |s| s.pos) } else { self.pos };
        let (new_pos, shift) = self.resize_main(cols, rows, main_pos);
        if alternate {
            std::mem::swap(&mut self.grid, &mut self.hidden);
        }
        let alt_y = if alternate { self.pos.y } else { 0 };
        let drop_top = (alt_y + 1).saturating_sub(rows);
        if alternate {
            self.grid.resize_plain(cols, rows, drop_top);
            let pending = self.pos.pending && cols == old;
            self.pos = Pos { x: self.pos.x.min(cols - 1), y: alt_y - drop_top, pending };
        } else {
            self.hidden.resize_plain(cols, rows, 0);
            self.pos = new_pos;
        }
        if let Some(s) = &mut self.saved[0] {
            if alternate {
                s.pos = new_pos;
            } else {
                let y = (s.pos.y as isize + shift).max(0) as usize;
                s.pos = Pos {
                    x: s.pos.x.min(cols - 1),
                    y: y.min(rows - 1),
                    pending: s.pos.pending && cols == old,
                };
            }
        }
        if let Some(s) = &mut self.saved[1] {
            s.pos = Pos {
                x: s.pos.x.min(cols - 1),
                y: s.pos.y.min(rows - 1),
                pending: s.pos.pending && cols == old,
            };
        }
        self.size = size;
        self.resize_tabs(cols);
        self.reset_margins();
        self.joiner = crate::unicode::Joiner::NONE;
        let end = self.row_end();
        self.pos.x = self.pos.x.min(end);
        self.dirty_all();
        if self.styles.wants_sweep() {
            self.sweep_styles();
        }
        if self.modes.resize_reports() {
            self.report_resize();
        }
    }

    /// Resizes the main screen, which is in `grid`. Returns where the cursor went, and by how much
    /// rows moved down.
    fn resize_main(&mut self, cols: usize, rows: usize, pos: Pos) -> (Pos, isize) {
        let old_rows = self.grid.rows;
        let reflow = self.settings.reflow && cols != self.grid.cols;
        let mut rewrap = Rewrap::new(if reflow { cols } else { self.grid.cols });
        if reflow {
            self.reflow_scrollback(cols, &mut rewrap);
            rewrap.restart_count();
        }
        // What is left in `rewrap` is the head of a line that goes on at the top of the screen.
        let used = (0..old_rows).rev().find(|&y| !self.grid.row(y).is_empty()).map_or(0, |y| y + 1);
        let used = used.max(pos.y + 1);
        let mut lines: Vec<(Vec<crate::cell::Cell>, RowMeta)> = Vec::new();
        let mut cursor = (0, pos.x, pos.pending);
        for y in 0..used {
            let meta = *self.grid.meta(y);
            if y == pos.y {
                let row = self.grid.row(y);
                // A cursor beyond text that was itself put there by addressing is not at the end of
                // a line: it stays in its row.
                let addressed = pos.x >= row.len() && row.iter().any(|c| c.text == 0);
                let x = if addressed { pos.x.min(cols - 1) } else { pos.x };
                rewrap.track(x + usize::from(pos.pending && reflow));
            }
            if reflow {
                let width = self.grid.cols;
                rewrap.push(self.grid.row(y), &meta, width, &mut |c, m| lines.push((c.to_vec(), m)));
            } else {
                if y == pos.y {
                    cursor = (lines.len(), pos.x, pos.pending);
                }
                lines.push((self.grid.row(y).to_vec(), meta));
            }
        }
        if reflow {
            rewrap.finish(&mut |c, m| lines.push((c.to_vec(), m)));
            let (line, col) = rewrap.tracked().unwrap_or((0, 0));
            let pending = pos.pending && col >= cols;
            cursor = (line, col.min(cols - 1), pending);
        }
        // Rows that leave at the top, or come back there.
        let excess = lines.len().saturating_sub(rows).min(cursor.0);
        for (mut cells, meta) in lines.drain(..excess) {
            if self.tracing {
                cells.iter_mut().for_each(|c| c.style = crate::style::StyleId(0));
            }
            self.scrollback.push(&cells, &meta, &self.styles, &self.clusters);
        }
        cursor.0 -= excess;
        let want = if rows > old_rows { pos.y + rows - old_rows } else { pos.y.min(rows - 1) };
        let room = rows.saturating_sub(lines.len());
        let back =
            if excess > 0 { 0 } else { want.saturating_sub(cursor.0).min(room).min(self.scrollback.len()) };
        let mut grid = Grid::new(cols, rows);
        for i in (0..back).rev() {
            let Some(packed) = self.scrollback.last() else { break };
            let mut cells = Vec::with_capacity(packed.cells);
            packed.unpack(&mut self.styles, &mut self.clusters, &mut cells);
            grid.put_row(i, &cells, packed.meta);
            self.scrollback.pop();
        }
        for (y, (cells, meta)) in lines.iter().enumerate().take(rows.saturating_sub(back)) {
            let mut cells = &cells[..cells.len().min(cols)];
            if let [head @ .., last] = cells
                && last.is_wide()
            {
                cells = head;
            }
            grid.put_row(y + back, cells, *meta);
        }
        let y = (cursor.0 + back).min(rows - 1);
        self.grid = grid;
        let x = cursor.1.min(cols - 1);
        (Pos { x, y, pending: cursor.2 && x == cols - 1 }, back as isize - excess as isize)
    }

    /// Wraps scrollback anew. A line that goes on beyond its end is left open in `rewrap`.
    fn reflow_scrollback(&mut self, cols: usize, rewrap: &mut Rewrap) {
        let (chunks, mut skip) = self.scrollback.take();
        let width = self.grid.cols;
        let mut cells = Vec::new();
        for chunk in chunks {
            if !rewrap.is_open() && !chunk.wraps && chunk.widest <= cols {
                self.scrollback.push_chunk(chunk, std::mem::take(&mut skip));
                continue;
            }
            for packed in Scrollback::chunk_rows(&chunk, std::mem::take(&mut skip)) {
                cells.clear();
                packed.unpack(&mut self.styles, &mut self.clusters, &mut cells);
                let (scrollback, styles, clusters) = (&mut self.scrollback, &self.styles, &self.clusters);
                rewrap
                    .push(&cells, &packed.meta, width, &mut |c, m| scrollback.push(c, &m, styles, clusters));
            }
            if self.styles.wants_sweep() && !rewrap.is_open() {
                self.sweep_styles();
            }
        }
    }
}
