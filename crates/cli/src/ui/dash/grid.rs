//! How many tiles stand side by side, and where each is.

use ratatui::layout::Rect;

/// The smallest tile, unless the screen is smaller.
const LEAST: (u16, u16) = (24, 6);

/// More columns and rows are not worth fewer tiles: most rows of a terminal are short.
const ENOUGH: (u16, u16) = (60, 24);

/// Tiles in a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Rows that fit on the screen at once.
    pub(super) shown: usize,
}

impl Grid {
    /// The grid for a number of tiles whose terminals have about `shape` columns and rows.
    pub(super) fn of(count: usize, area: Rect, shape: (u16, u16)) -> Self {
        let most = usize::from(area.width / LEAST.0).max(1).min(count.max(1));
        let fits = usize::from(area.height / LEAST.1).max(1);
        let shape = (shape.0.min(ENOUGH.0), shape.1.min(ENOUGH.1));
        // The best number of columns is the one with which a tile shows the largest part of its
        // terminal.
        let worth = |columns: usize| {
            let rows = count.div_ceil(columns).clamp(1, fits);
            let width = f64::from(area.width) / columns as f64;
            let height = f64::from(area.height) / rows as f64;
            let share = |has: f64, wants: u16| (has / (f64::from(wants) + 2.0)).min(1.0);
            let seen = (rows * columns).min(count) as f64 / count.max(1) as f64;
            // A few rows tell more than the same share of the columns.
            share(width, shape.0) * share(height, shape.1).powf(0.7) * seen
        };
        let mut columns = 1;
        for n in 2..=most {
            if worth(n) > worth(columns) + 1e-9 {
                columns = n;
            }
        }
        let rows = count.div_ceil(columns).max(1);
        Self { columns, rows, shown: rows.min(fits) }
    }

    /// The area of a tile if `first` is the first row in sight; empty if it is not in sight.
    pub(super) fn tile(self, i: usize, count: usize, first: usize, area: Rect) -> Rect {
        let (row, column) = (i / self.columns, i % self.columns);
        let Some(row) = row.checked_sub(first).filter(|row| *row < self.shown) else { return Rect::ZERO };
        // The last row's tiles share its whole width.
        let in_row = if i / self.columns == self.rows - 1 {
            count - (self.rows - 1) * self.columns
        } else {
            self.columns
        };
        let (x, width) = share(area.width, in_row, column);
        let (y, height) = share(area.height, self.shown, row);
        Rect { x: area.x + x, y: area.y + y, width, height }
    }
}

/// The start and the length of the n-th part of a length.
fn share(length: u16, parts: usize, nth: usize) -> (u16, u16) {
    let at = |n: usize| (usize::from(length) * n / parts.max(1)) as u16;
    (at(nth), at(nth + 1) - at(nth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_area_and_do_not_overlap() {
        for (w, h) in [(200, 50), (80, 24), (40, 100), (24, 6), (10, 3), (1, 1), (0, 0)] {
            let area = Rect::new(0, 0, w, h);
            for count in 1..30 {
                let grid = Grid::of(count, area, (80, 24));
                let mut covered = vec![0; usize::from(w) * usize::from(h)];
                for i in 0..count {
                    let tile = grid.tile(i, count, 0, area);
                    for p in tile.positions() {
                        covered[usize::from(p.y) * usize::from(w) + usize::from(p.x)] += 1;
                    }
                }
                assert!(covered.iter().all(|n| *n <= 1), "{count} on {w}x{h}");
                if grid.shown == grid.rows {
                    assert!(covered.iter().all(|n| *n == 1), "{count} on {w}x{h}: {grid:?}");
                }
            }
        }
    }

    #[test]
    fn a_wide_screen_puts_terminals_side_by_side() {
        assert_eq!(Grid::of(2, Rect::new(0, 0, 200, 50), (80, 24)).columns, 2);
        assert_eq!(Grid::of(2, Rect::new(0, 0, 80, 60), (80, 24)).columns, 1);
        assert_eq!(Grid::of(4, Rect::new(0, 0, 170, 54), (80, 24)).columns, 2);
        for (size, columns) in [((80, 23), 2), ((120, 39), 2), ((200, 49), 3)] {
            assert_eq!(Grid::of(5, Rect::new(0, 0, size.0, size.1), (120, 40)).columns, columns, "{size:?}");
        }
    }
}
