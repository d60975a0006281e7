//! Blocks, shades, braille, and the mosaics of old computers: parts of a cell, filled.

use super::Mask;

/// Parts of a 2 by 4 grid that were in Unicode before its octants, and so are none of them: one bit
/// a part, counted in reading order.
const NO_OCTANTS: [u8; 26] = [
    // Quadrants: each is two parts high.
    0x00, 0x05, 0x0a, 0x0f, 0x50, 0x55, 0x5a, 0x5f, 0xa0, 0xa5, 0xaa, 0xaf, 0xf0, 0xf5, 0xfa, 0xff,
    // Rows, the corners, and the middles of the sides.
    0x03, 0x3f, 0xc0, 0xfc, 0x01, 0x02, 0x40, 0x80, 0x14, 0x28,
];

pub(super) fn draw(mask: &mut Mask, c: u32, line: i32) {
    let eighths = |mask: &mut Mask, from, to| mask.part((8, 8), from, to, 255);
    match c {
        0x2580 => eighths(mask, (0, 0), (8, 4)),
        0x2581..=0x2588 => eighths(mask, (0, 0x2588 - c as usize), (8, 8)),
        0x2589..=0x258f => eighths(mask, (0, 0), (0x2590 - c as usize, 8)),
        0x2590 => eighths(mask, (4, 0), (8, 8)),
        0x2591..=0x2593 => mask.alpha.fill(((c - 0x2590) * 64) as u8),
        0x2594 => eighths(mask, (0, 0), (8, 1)),
        0x2595 => eighths(mask, (7, 0), (8, 8)),
        // Upper left 1, upper right 2, lower left 4, lower right 8.
        0x2596..=0x259f => {
            grid(mask, 2, 2, [4, 8, 1, 13, 9, 7, 11, 2, 6, 14][(c - 0x2596) as usize]);
        }
        0x2800..=0x28ff => braille(mask, c - 0x2800),
        0x1cea8 => grid(mask, 2, 4, 0x01),
        0x1ceab => grid(mask, 2, 4, 0x02),
        0x1cea3 => grid(mask, 2, 4, 0x40),
        0x1cea0 => grid(mask, 2, 4, 0x80),
        0x1fbe6 => grid(mask, 2, 4, 0x14),
        0x1fbe7 => grid(mask, 2, 4, 0x28),
        0x1cd00..=0x1cde5 => {
            let octants = (0..=255u8).filter(|bits| !NO_OCTANTS.contains(bits));
            let bits = octants.into_iter().nth((c - 0x1cd00) as usize);
            grid(mask, 2, 4, bits.unwrap_or_default().into());
        }
        // Sextants, without those that are halves of the cell.
        0x1fb00..=0x1fb3b => {
            let n = c - 0x1fb00 + 1;
            grid(mask, 2, 3, n + u32::from(n >= 0x15) + u32::from(n >= 0x29));
        }
        0x1fb3c..=0x1fb67 => wedge(mask, WEDGES[(c - 0x1fb3c) as usize]),
        0x1fb68..=0x1fb6f | 0x1fb9a | 0x1fb9b => triangles(mask, c),
        0x1fb70..=0x1fb75 => {
            let n = (c - 0x1fb6f) as usize;
            eighths(mask, (n, 0), (n + 1, 8));
        }
        0x1fb76..=0x1fb7b => {
            let n = (c - 0x1fb75) as usize;
            eighths(mask, (0, n), (8, n + 1));
        }
        0x1fb7c..=0x1fb81 => {
            let side = |mask: &mut Mask, n: usize| eighths(mask, (n, 0), (n + 1, 8));
            let row = |mask: &mut Mask, n: usize| eighths(mask, (0, n), (8, n + 1));
            match c {
                0x1fb7c | 0x1fb7d => side(mask, 0),
                0x1fb7e | 0x1fb7f => side(mask, 7),
                _ => {}
            }
            let rows: &[usize] = match c {
                0x1fb7c | 0x1fb7f => &[7],
                0x1fb7d | 0x1fb7e => &[0],
                0x1fb80 => &[0, 7],
                _ => &[0, 2, 4, 7],
            };
            rows.iter().for_each(|n| row(mask, *n));
        }
        0x1fb82..=0x1fb86 => eighths(mask, (0, 0), (8, [2, 3, 5, 6, 7][(c - 0x1fb82) as usize])),
        0x1fb87..=0x1fb8b => eighths(mask, ([6, 5, 3, 2, 1][(c - 0x1fb87) as usize], 0), (8, 8)),
        0x1fb8c..=0x1fb94 => shades(mask, c),
        0x1fb95 | 0x1fb96 => {
            let odd = (c - 0x1fb95) as usize;
            for y in 0..8 {
                (0..4)
                    .filter(|x| (x + y) % 2 == odd)
                    .for_each(|x| mask.part((4, 8), (x, y), (x + 1, y + 1), 255));
            }
        }
        0x1fb97 => [2, 6].into_iter().for_each(|y| eighths(mask, (0, y), (8, y + 2))),
        0x1fb98 | 0x1fb99 => {
            let (w, h) = (mask.width as f32, mask.height as f32);
            // A whole number of stripes fits into each side, so that they go on in the next cell.
            mask.shape(255, |x, y| {
                let x = if c == 0x1fb98 { x } else { w - x };
                (x / w * 2.0 - y / h * 4.0).rem_euclid(1.0) < 0.3 + 0.02 * line as f32
            });
        }
        _ => {
            let (w, h) = (mask.width as f32, mask.height as f32);
            mask.shape(128, |x, y| match c {
                0x1fb9c => y / h <= 1.0 - x / w,
                0x1fb9d => y / h <= x / w,
                0x1fb9e => y / h >= 1.0 - x / w,
                _ => y / h >= x / w,
            });
        }
    }
}

/// Fills the parts of a grid whose bits are set, counted in reading order.
fn grid(mask: &mut Mask, cols: usize, rows: usize, bits: u32) {
    for i in (0..cols * rows).filter(|i| bits >> i & 1 == 1) {
        let (x, y) = (i % cols, i / cols);
        mask.part((cols, rows), (x, y), (x + 1, y + 1), 255);
    }
}

fn braille(mask: &mut Mask, bits: u32) {
    const PLACES: [(i32, i32); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let (w, h) = (mask.width as i32, mask.height as i32);
    // A gap remains between the dots of neighbouring cells.
    let size = (w / 2 - 1).min(h / 4 - 1).clamp(1, (w / 3).max(1));
    for (_, (x, y)) in PLACES.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1) {
        let (left, top) = ((w * (2 * x + 1) / 2 - size) / 2, (h * (2 * y + 1) / 4 - size) / 2);
        if size <= 3 {
            mask.rect(left, top, left + size, top + size, 255);
        } else {
            let radius = size as f32 / 2.0;
            let (cx, cy) = (left as f32 + radius, top as f32 + radius);
            mask.shape(255, |px, py| (px - cx).hypot(py - cy) <= radius);
        }
    }
}

/// The halves of cells that are shaded or filled.
fn shades(mask: &mut Mask, c: u32) {
    let halves: [(usize, usize, usize, usize); 4] = [(0, 0, 1, 2), (1, 0, 2, 2), (0, 0, 2, 1), (0, 1, 2, 2)];
    let mut half = |i: usize, alpha| {
        let (x0, y0, x1, y1) = halves[i];
        mask.part((2, 2), (x0, y0), (x1, y1), alpha);
    };
    match c {
        0x1fb8c..=0x1fb8f => half((c - 0x1fb8c) as usize, 128),
        0x1fb90 => [0, 1].into_iter().for_each(|i| half(i, 127)),
        0x1fb91 => [(2, 255), (3, 127)].into_iter().for_each(|(i, a)| half(i, a)),
        0x1fb92 => [(2, 127), (3, 255)].into_iter().for_each(|(i, a)| half(i, a)),
        _ => [(0, 127), (1, 255)].into_iter().for_each(|(i, a)| half(i, a)),
    }
}

/// Points on the cell's edge, in halves of its width and thirds of its height.
const POINTS: [(f32, f32); 10] = [
    (0.0, 0.0),
    (0.5, 0.0),
    (1.0, 0.0),
    (0.0, 1.0 / 3.0),
    (1.0, 1.0 / 3.0),
    (0.0, 2.0 / 3.0),
    (1.0, 2.0 / 3.0),
    (0.0, 1.0),
    (0.5, 1.0),
    (1.0, 1.0),
];

/// U+1FB3C to U+1FB67: the corner that is filled, and the ends of the line that bounds it.
#[rustfmt::skip]
const WEDGES: [(u8, u8, u8); 44] = [
    (7, 5, 8), (7, 5, 9), (7, 3, 8), (7, 3, 9), (7, 0, 8), (9, 3, 1), (9, 3, 2), (9, 5, 1),
    (9, 5, 2), (9, 7, 1), (9, 5, 4), (9, 8, 6), (9, 7, 6), (9, 8, 4), (9, 7, 4), (9, 8, 2),
    (7, 1, 4), (7, 0, 4), (7, 1, 6), (7, 0, 6), (7, 1, 9), (7, 3, 6), (2, 5, 8), (2, 5, 9),
    (2, 3, 8), (2, 3, 9), (2, 0, 8), (0, 3, 1), (0, 3, 2), (0, 5, 1), (0, 5, 2), (0, 7, 1),
    (0, 5, 4), (0, 8, 6), (0, 7, 6), (0, 8, 4), (0, 7, 4), (0, 8, 2), (2, 1, 4), (2, 0, 4),
    (2, 1, 6), (2, 0, 6), (2, 1, 9), (2, 3, 6),
];

fn wedge(mask: &mut Mask, (corner, a, b): (u8, u8, u8)) {
    let (w, h) = (mask.width as f32, mask.height as f32);
    let point = |i: u8| (POINTS[usize::from(i)].0 * w, POINTS[usize::from(i)].1 * h);
    let (a, b) = (point(a), point(b));
    let side = |(x, y): (f32, f32)| (x - a.0) * (b.1 - a.1) - (y - a.1) * (b.0 - a.0);
    let filled = side(point(corner));
    mask.shape(255, |x, y| side((x, y)) * filled >= 0.0);
}

/// Quarters of the cell between its middle and a side, one bit each: left 1, upper 2, right 4,
/// lower 8.
fn triangles(mask: &mut Mask, c: u32) {
    let bits = match c {
        0x1fb68..=0x1fb6b => 15 & !(1 << (c - 0x1fb68)),
        0x1fb6c..=0x1fb6f => 1 << (c - 0x1fb6c),
        0x1fb9a => 10,
        _ => 5,
    };
    let (w, h) = (mask.width as f32, mask.height as f32);
    mask.shape(255, |x, y| {
        let (x, y) = (x / w - 0.5, y / h - 0.5);
        let quarter = match (x.abs() >= y.abs(), x < 0.0, y < 0.0) {
            (true, true, _) => 1,
            (false, _, true) => 2,
            (true, false, _) => 4,
            _ => 8,
        };
        bits & quarter != 0
    });
}
