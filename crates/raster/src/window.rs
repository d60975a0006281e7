//! What lies around the grid: padding, or a window with a title bar and a shadow.

use tapdeck_term::Rgb;

use crate::glyphs::{Cell, Glyphs, Shape, Stretch};
use crate::image::{Image, mix, opaque};
use crate::look::Look;
use crate::paint::blit;

/// Pixels around the grid.
pub(crate) struct Frame {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) top: u32,
    pub(crate) bottom: u32,
}

const MARGIN: u32 = 32;
const BAR: u32 = 30;
const CORNER: u32 = 9;
const SHADOW: u32 = 22;
/// How far the shadow falls.
const DROP: u32 = 8;
const BUTTONS: [Rgb; 3] = [Rgb(0xff, 0x5f, 0x57), Rgb(0xfe, 0xbc, 0x2e), Rgb(0x28, 0xc8, 0x40)];

impl Frame {
    pub(crate) fn new(look: &Look) -> Self {
        let padding = look.scaled(look.padding);
        let (margin, bar) = if look.window { (look.scaled(MARGIN), look.scaled(BAR)) } else { (0, 0) };
        Self {
            left: padding + margin,
            right: padding + margin,
            top: padding + margin + bar,
            bottom: padding + margin,
        }
    }
}

/// How far a point lies outside of a rectangle with rounded corners; negative inside.
fn distance(x: f32, y: f32, (x0, y0, x1, y1): (f32, f32, f32, f32), radius: f32) -> f32 {
    let (cx, cy) = ((x0 + x1) / 2.0, (y0 + y1) / 2.0);
    let (dx, dy) = ((x - cx).abs() - (x1 - x0) / 2.0 + radius, (y - cy).abs() - (y1 - y0) / 2.0 + radius);
    dx.max(0.0).hypot(dy.max(0.0)) + dx.max(dy).min(0.0) - radius
}

/// Draws the window on a transparent picture; the grid is drawn into it later.
pub(crate) fn draw(image: &mut Image, look: &Look, glyphs: &mut Glyphs, cell: Cell, paper: Rgb, title: &str) {
    let (w, h) = (image.width() as i32, image.height() as i32);
    let margin = look.scaled(MARGIN) as f32;
    let window = (margin, margin, w as f32 - margin, h as f32 - margin);
    let drop = look.scaled(DROP) as f32;
    let shadow = (window.0, window.1 + drop, window.2, window.3 + drop);
    let (corner, blur) = (look.scaled(CORNER) as f32, look.scaled(SHADOW) as f32);
    let light = paper.luminance() > 0.4;
    let paper = opaque(paper);
    let bar = mix(paper, if light { [0, 0, 0, 255] } else { [255; 4] }, if light { 18 } else { 22 });
    let bar_end = margin + look.scaled(BAR) as f32;
    for y in 0..h {
        for (x, pixel) in (0..w).zip(image.span(0, w, y)) {
            let (px, py) = (x as f32 + 0.5, y as f32 + 0.5);
            let inside = (0.5 - distance(px, py, window, corner)).clamp(0.0, 1.0);
            let colour = if py < bar_end { bar } else { paper };
            if inside >= 1.0 {
                *pixel = colour;
                continue;
            }
            let far = (distance(px, py, shadow, corner) / blur + 0.35).clamp(0.0, 1.0);
            let shade = (1.0 - far).powi(2) * 0.55;
            let alpha = inside + shade * (1.0 - inside);
            if alpha > 0.0 {
                let part = |c: u8| (f32::from(c) * inside / alpha) as u8;
                *pixel = [part(colour[0]), part(colour[1]), part(colour[2]), (alpha * 255.0) as u8];
            }
        }
    }
    let middle = (margin + bar_end) / 2.0;
    let radius = look.scaled(6).max(1) as f32;
    let mut x = margin + look.scaled(18) as f32;
    for button in BUTTONS {
        disc(image, (x, middle), radius, opaque(button));
        x += look.scaled(20) as f32;
    }
    write_title(
        image,
        glyphs,
        cell,
        title,
        (x, window.2 - (x - margin), middle),
        mix(bar, if light { [0, 0, 0, 255] } else { [255; 4] }, 150),
    );
}

fn disc(image: &mut Image, (cx, cy): (f32, f32), radius: f32, colour: [u8; 4]) {
    for y in (cy - radius) as i32 - 1..(cy + radius) as i32 + 2 {
        for x in (cx - radius) as i32 - 1..(cx + radius) as i32 + 2 {
            let far = (x as f32 + 0.5 - cx).hypot(y as f32 + 0.5 - cy);
            let covered = (radius - far + 0.5).clamp(0.0, 1.0);
            image.tint(x, y, colour, (covered * 255.0) as u8);
        }
    }
}

/// Writes as much of the title as fits, in the middle of the bar.
fn write_title(
    image: &mut Image,
    glyphs: &mut Glyphs,
    cell: Cell,
    title: &str,
    (from, to, middle): (f32, f32, f32),
    ink: [u8; 4],
) {
    let room = ((to - from) / cell.width as f32).max(0.0) as usize;
    let mut shown: Vec<(char, usize)> = Vec::new();
    let mut columns = 0;
    for ch in title.chars() {
        let width = tapdeck_term::char_width(ch);
        if width == 0 {
            continue;
        }
        if columns + width > room {
            if let Some(last) = shown.last_mut() {
                *last = ('…', last.1);
            }
            break;
        }
        columns += width;
        shown.push((ch, width));
    }
    let mut x = ((from + to) / 2.0) as i32 - (columns * cell.width / 2) as i32;
    let y = middle as i32 - cell.height as i32 / 2;
    let clip = (from as i32, y, to as i32, y + cell.height as i32);
    for (ch, width) in shown {
        let shape = Shape { style: 0, columns: width as u8, stretch: Stretch::No };
        blit(image, glyphs.get(ch.encode_utf8(&mut [0; 4]), shape), (x, y), ink, clip);
        x += (width * cell.width) as i32;
    }
}
