//! The separators of powerline, U+E0B0 to U+E0BF.

use super::{Mask, near_line};

pub(super) fn draw(mask: &mut Mask, c: u32, line: i32) {
    let (w, h) = (mask.width as f32, mask.height as f32);
    let half = line as f32 * 0.55;
    let mirrored = matches!(c, 0xe0b2 | 0xe0b3 | 0xe0b6 | 0xe0b7);
    mask.shape(255, |x, y| {
        let x = if mirrored { w - x } else { x };
        // From -1 at the top to 1 at the bottom.
        let v = (y - h / 2.0) / (h / 2.0);
        match c {
            0xe0b0 | 0xe0b2 => v.abs() <= 1.0 - x / w,
            0xe0b1 | 0xe0b3 => {
                let tip = (w - half, h / 2.0);
                near_line((x, y), (0.0, if v < 0.0 { 0.0 } else { h }), tip, half)
            }
            0xe0b4 | 0xe0b6 => (x / w).hypot(v) <= 1.0,
            0xe0b5 | 0xe0b7 => {
                let line = half * 2.0;
                (x / w).hypot(v) <= 1.0 && (x / (w - line)).hypot((y - h / 2.0) / (h / 2.0 - line)) >= 1.0
            }
            0xe0b8 => y / h >= x / w,
            0xe0ba => y / h >= 1.0 - x / w,
            0xe0bc => y / h <= 1.0 - x / w,
            0xe0be => y / h <= x / w,
            0xe0b9 | 0xe0bf => near_line((x, y), (0.0, 0.0), (w, h), half),
            _ => near_line((x, y), (w, 0.0), (0.0, h), half),
        }
    });
}
