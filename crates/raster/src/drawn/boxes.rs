//! Lines and boxes, U+2500 to U+257F, and the diagonals of U+1FBA0 to U+1FBAE.

use super::{Mask, near_line};

/// The arms of each character, a digit each for up, right, down and left: 0 none, 1 light, 2 heavy,
/// 3 double. All zeros are dashes, arcs and diagonals.
#[rustfmt::skip]
const ARMS: [u16; 128] = [
    0o0101, 0o0202, 0o1010, 0o2020, 0o0000, 0o0000, 0o0000, 0o0000, // ─━│┃┄┅┆┇
    0o0000, 0o0000, 0o0000, 0o0000, 0o0110, 0o0210, 0o0120, 0o0220, // ┈┉┊┋┌┍┎┏
    0o0011, 0o0012, 0o0021, 0o0022, 0o1100, 0o1200, 0o2100, 0o2200, // ┐┑┒┓└┕┖┗
    0o1001, 0o1002, 0o2001, 0o2002, 0o1110, 0o1210, 0o2110, 0o1120, // ┘┙┚┛├┝┞┟
    0o2120, 0o2210, 0o1220, 0o2220, 0o1011, 0o1012, 0o2011, 0o1021, // ┠┡┢┣┤┥┦┧
    0o2021, 0o2012, 0o1022, 0o2022, 0o0111, 0o0112, 0o0211, 0o0212, // ┨┩┪┫┬┭┮┯
    0o0121, 0o0122, 0o0221, 0o0222, 0o1101, 0o1102, 0o1201, 0o1202, // ┰┱┲┳┴┵┶┷
    0o2101, 0o2102, 0o2201, 0o2202, 0o1111, 0o1112, 0o1211, 0o1212, // ┸┹┺┻┼┽┾┿
    0o2111, 0o1121, 0o2121, 0o2112, 0o2211, 0o1122, 0o1221, 0o2212, // ╀╁╂╃╄╅╆╇
    0o1222, 0o2122, 0o2221, 0o2222, 0o0000, 0o0000, 0o0000, 0o0000, // ╈╉╊╋╌╍╎╏
    0o0303, 0o3030, 0o0310, 0o0130, 0o0330, 0o0013, 0o0031, 0o0033, // ═║╒╓╔╕╖╗
    0o1300, 0o3100, 0o3300, 0o1003, 0o3001, 0o3003, 0o1310, 0o3130, // ╘╙╚╛╜╝╞╟
    0o3330, 0o1013, 0o3031, 0o3033, 0o0313, 0o0131, 0o0333, 0o1303, // ╠╡╢╣╤╥╦╧
    0o3101, 0o3303, 0o1313, 0o3131, 0o3333, 0o0000, 0o0000, 0o0000, // ╨╩╪╫╬╭╮╯
    0o0000, 0o0000, 0o0000, 0o0000, 0o0001, 0o1000, 0o0100, 0o0010, // ╰╱╲╳╴╵╶╷
    0o0002, 0o2000, 0o0200, 0o0020, 0o0201, 0o1020, 0o0102, 0o2010, // ╸╹╺╻╼╽╾╿
];

pub(super) fn draw(mask: &mut Mask, c: u32, line: i32) {
    match c {
        0x2504..=0x250b => dashes(mask, c & 1 == 1, c & 2 == 2, 3 + (c as i32 - 0x2504) / 4, line),
        0x254c..=0x254f => dashes(mask, c & 1 == 1, c & 2 == 2, 2, line),
        0x256d..=0x2570 => arc(mask, matches!(c, 0x256e | 0x256f), c >= 0x256f, line),
        0x2571..=0x2573 => {
            let (w, h) = (mask.width as f32, mask.height as f32);
            let half = line as f32 * 0.55;
            mask.shape(255, |x, y| {
                c != 0x2572 && near_line((x, y), (w, 0.0), (0.0, h), half)
                    || c != 0x2571 && near_line((x, y), (0.0, 0.0), (w, h), half)
            });
        }
        _ => arms(mask, ARMS[(c & 0x7f) as usize], line),
    }
}

/// Where a line of a thickness begins, in the middle of a side.
fn middle(side: usize, thickness: i32) -> i32 {
    (side as i32 - thickness).div_euclid(2)
}

/// Draws each arm towards its edge. An arm is drawn as if it pointed right, and turned.
fn arms(mask: &mut Mask, code: u16, line: i32) {
    let arms = [code >> 9 & 7, code >> 6 & 7, code >> 3 & 7, code & 7];
    for direction in 0..4 {
        let (kind, opposite) = (arms[direction], arms[(direction + 2) % 4]);
        // The arms to the left and to the right of one that looks along this arm.
        let (before, after) = (arms[(direction + 3) % 4], arms[(direction + 1) % 4]);
        let turned = Turned { direction, mask: &mut *mask };
        arm(turned, kind, opposite, before, after, line);
    }
}

/// A mask seen so that an arm points away from the middle along a first axis.
struct Turned<'a> {
    direction: usize,
    mask: &'a mut Mask,
}

impl Turned<'_> {
    /// Sides along and across the arm.
    fn sides(&self) -> (usize, usize) {
        let (w, h) = (self.mask.width, self.mask.height);
        if self.direction % 2 == 1 { (w, h) } else { (h, w) }
    }

    /// Covers what lies between `from` on the arm's axis and the cell's edge, and across it between
    /// `c0` and `c1`. All are absolute pixels of the untouched mask.
    fn cover(&mut self, from: i32, c0: i32, c1: i32) {
        let (w, h) = (self.mask.width as i32, self.mask.height as i32);
        match self.direction {
            0 => self.mask.rect(c0, 0, c1, from, 255),
            1 => self.mask.rect(from, c0, w, c1, 255),
            2 => self.mask.rect(c0, from, c1, h, 255),
            _ => self.mask.rect(0, c0, from, c1, 255),
        }
    }
}

fn arm(mut t: Turned<'_>, kind: u16, opposite: u16, before: u16, after: u16, line: i32) {
    let (along, across) = t.sides();
    let outwards = matches!(t.direction, 1 | 2);
    // A point on the arm's axis: `inner` and `outer` are measured in the arm's own direction from a
    // light line in the middle, so that all four directions share the rules.
    let low = middle(along, line);
    let at = |offset: i32| if outwards { low + offset } else { low + line - offset };
    let heavy = |kind: u16| if kind == 2 { line / 2 } else { 0 };
    // Where the arm begins if it has to cover the corner with the lines that cross it.
    let crossing = match (before, after) {
        (0, 0) => None,
        (a, b) => Some(if a == 3 || b == 3 { line } else { heavy(a).max(heavy(b)) }),
    };
    let light = middle(across, line);
    match kind {
        0 => {}
        3 => {
            for (near, far, rail) in [(before, after, true), (after, before, false)] {
                // `before` lies above or left of an arm that points up or to the right.
                let upper = rail == (t.direction < 2);
                let c0 = if upper { light - line } else { light + line };
                let from = if near == 3 {
                    line
                } else if opposite == 0 {
                    if far == 3 {
                        -line
                    } else if near != 0 || far != 0 {
                        0
                    } else {
                        line / 2
                    }
                } else {
                    line / 2
                };
                t.cover(at(from), c0, c0 + line);
            }
        }
        _ => {
            let thickness = if kind == 2 { 2 * line } else { line };
            let c0 = middle(across, thickness);
            let from = match crossing {
                None if opposite == 0 => 0,
                None => line / 2,
                Some(_) if opposite != 0 => line / 2,
                Some(_) if before == 3 && after == 3 => line,
                Some(reach) => -reach,
            };
            t.cover(at(from), c0, c0 + thickness);
        }
    }
}

fn dashes(mask: &mut Mask, heavy: bool, vertical: bool, count: i32, line: i32) {
    let thickness = if heavy { 2 * line } else { line };
    let (along, across) = if vertical { (mask.height, mask.width) } else { (mask.width, mask.height) };
    let c0 = middle(across, thickness);
    for i in 0..count {
        let (from, to) = (along as i32 * i / count, along as i32 * (i + 1) / count);
        let gap = ((to - from) / 4).max(1);
        let (from, to) = (from + gap / 2, (to - (gap - gap / 2)).max(from + 1));
        match vertical {
            true => mask.rect(c0, from, c0 + thickness, to, 255),
            false => mask.rect(from, c0, to, c0 + thickness, 255),
        }
    }
}

/// A rounded corner: `left` where it opens to the left, `up` where it opens upwards.
fn arc(mask: &mut Mask, left: bool, up: bool, line: i32) {
    let (w, h) = (mask.width as f32, mask.height as f32);
    let half = line as f32 / 2.0;
    let (cx, cy) = (middle(mask.width, line) as f32 + half, middle(mask.height, line) as f32 + half);
    // Measured from the middle towards the edges that the corner reaches.
    let (reach_x, reach_y) = (if left { cx } else { w - cx }, if up { cy } else { h - cy });
    // The last pixel is straight, as in the next cell.
    let radius = reach_x.min(reach_y) - 1.0;
    mask.shape(255, |x, y| {
        let (dx, dy) = (if left { cx - x } else { x - cx }, if up { cy - y } else { y - cy });
        if dy >= radius {
            dx.abs() <= half
        } else if dx >= radius {
            dy.abs() <= half
        } else {
            ((radius - dx).hypot(radius - dy) - radius).abs() <= half
        }
    });
}

/// Bits of the diagonals between the middles of the sides, for each of U+1FBA0 to U+1FBAE: 1 top to
/// left, 2 top to right, 4 left to bottom, 8 right to bottom.
const DIAGONALS: [u8; 15] = [1, 2, 4, 8, 5, 10, 12, 3, 9, 6, 14, 13, 11, 7, 15];

pub(super) fn diagonals(mask: &mut Mask, c: u32, line: i32) {
    let (w, h) = (mask.width as f32, mask.height as f32);
    let half = line as f32 * 0.55;
    let bits = DIAGONALS[(c - 0x1fba0) as usize];
    let (top, right) = ((w / 2.0, 0.0), (w, h / 2.0));
    let (bottom, left) = ((w / 2.0, h), (0.0, h / 2.0));
    mask.shape(255, |x, y| {
        let part = match (x < w / 2.0, y < h / 2.0) {
            (true, true) => (1, top, left),
            (false, true) => (2, top, right),
            (true, false) => (4, left, bottom),
            (false, false) => (8, right, bottom),
        };
        bits & part.0 != 0 && near_line((x, y), part.1, part.2, half)
    });
}
