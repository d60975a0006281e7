//! Sizes of terminals, as the wire carries them and as the host uses them.

use tapdeck_core::WinSize;
use tapdeck_proto::attach::Size;

/// No terminal has more columns or rows.
const MAX_SIDE: u16 = 10_000;

/// Returns a size that the wire can carry. A terminal that does not know its size still needs one
/// where the program runs.
pub fn wire_size(size: WinSize) -> Size {
    let size = size.or_default();
    Size {
        cols: size.cols.min(MAX_SIDE),
        rows: size.rows.min(MAX_SIDE),
        pixel_width: size.x_pixels,
        pixel_height: size.y_pixels,
    }
}

/// Returns a size of the wire as the host uses it.
pub fn win_size(size: Size) -> WinSize {
    WinSize { cols: size.cols, rows: size.rows, x_pixels: size.pixel_width, y_pixels: size.pixel_height }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_does_not_know_its_size_gets_one() {
        let size = win_size(wire_size(WinSize::cells(0, 0)));
        assert_eq!((size.cols, size.rows), (80, 24));
        let size = win_size(wire_size(WinSize::cells(60_000, 30)));
        assert_eq!((size.cols, size.rows), (MAX_SIDE, 30));
    }
}
