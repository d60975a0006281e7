//! Symbols of agents and prompts that common fonts lack.

use super::{Mask, near_line};

pub(super) fn draw(mask: &mut Mask, c: u32, line: i32) {
    let (w, h) = (mask.width as f32, mask.height as f32);
    let thick = line as f32;
    // The middle of lower-case letters, and what a symbol may take around it.
    let (cx, cy, reach) = (w / 2.0, h * 0.53, (w / 2.0 - thick * 0.5).min(h * 0.3));
    match c {
        // Corners that hang from the line above, or stand on the one below.
        0x23be | 0x23bf => {
            let (x, w) = (mask.width as i32 / 4, mask.width as i32);
            let y = if c == 0x23bf { mask.height as i32 * 3 / 5 } else { mask.height as i32 * 2 / 5 };
            match c {
                0x23bf => mask.rect(x, 0, x + line, y + line, 255),
                _ => mask.rect(x, y, x + line, mask.height as i32, 255),
            }
            mask.rect(x, y, w - line, y + line, 255);
        }
        0x23fa => mask.shape(255, |x, y| (x - cx).hypot(y - cy) <= reach),
        0x23f9 => mask.shape(255, |x, y| (x - cx).abs().max((y - cy).abs()) <= reach * 0.85),
        0x23f8 => mask.shape(255, |x, y| {
            (y - cy).abs() <= reach && (reach * 0.25..=reach * 0.85).contains(&(x - cx).abs())
        }),
        // Triangles that point to the left, right, up and down.
        0x23f4..=0x23f7 => mask.shape(255, |x, y| {
            let (x, y) = ((x - cx) / reach, (y - cy) / reach);
            let (along, across) = match c {
                0x23f4 => (-x, y),
                0x23f5 => (x, y),
                0x23f6 => (-y, x),
                _ => (y, x),
            };
            along.abs() <= 0.8 && across.abs() <= (0.8 - along) / 1.6
        }),
        // A branch: a stem, and a second one that leaves it.
        0xe0a0 => {
            let (left, right) = (w * 0.28, w * 0.74);
            let (top, fork, bottom) = (h * 0.24, h * 0.46, h * 0.84);
            let half = thick * 0.6;
            mask.shape(255, |x, y| {
                let stem = (x - left).abs() <= half && (top..=bottom).contains(&y);
                let twig = (x - right).abs() <= half && (top..=fork).contains(&y);
                let bough =
                    (left..=right).contains(&x) && near_line((x, y), (right, fork), (left, h * 0.66), half);
                let knot = |px: f32, py: f32| (x - px).hypot(y - py) <= w * 0.17;
                stem || twig || bough || knot(left, top) || knot(right, top) || knot(left, bottom)
            });
        }
        // A padlock.
        _ => {
            let (top, half) = (h * 0.46, w * 0.36);
            mask.shape(255, |x, y| {
                let body = (x - cx).abs() <= half && (top..=h * 0.8).contains(&y);
                let far = (x - cx).hypot((y - top) * 0.9);
                let bow = y < top && (far - half * 0.7).abs() <= thick * 0.6;
                body || bow
            });
        }
    }
}
