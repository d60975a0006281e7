//! A chart of what a terminal can show, drawn and compared with the picture that was looked at.
//!
//! When a change is meant to draw another picture, look at the one in `target/tmp`, which the
//! failure names, and copy it over the golden one.

use std::path::Path;

use tapdeck_raster::{Image, Look, Raster, Selection};
use tapdeck_term::{Settings, Size, Term, Theme};

/// How far a channel of a pixel may be off: other processors round otherwise.
const TOLERANCE: u8 = 3;

const CHART: &str = "\
┌─┬┐ ╔═╦╗ ╓─╥╖ ╒═╤╕ ┏━┳┓ ╭─┬╮ ┍━┯┑ ┎─┰┒ ┄┄┄ ┅┅┅ ┈┈┈ ┉┉┉ ╌╌╌ ╍╍╍ ╱╲╳╱╲
│ ││ ║ ║║ ║ ║║ │ ││ ┃ ┃┃ │ ││ │ ││ ┃ ┃┃ ┆┇┊┋╎╏ ╴╵╶╷╸╹╺╻╼╽╾╿ ┽┾┿╀╁╂╃╄ ╲╱
├─┼┤ ╠═╬╣ ╟─╫╢ ╞═╪╡ ┣━╋┫ ├─┼┤ ┝━┿┥ ┠─╂┨ ┆┇┊┋╎╏ ┞┟┡┢┦┧┩┪┭┮┱┲┵┶┹┺ ╅╆╇╈╉╊
└─┴┘ ╚═╩╝ ╙─╨╜ ╘═╧╛ ┗━┻┛ ╰─┴╯ ┕━┷┙ ┖─┸┚ 
▁▂▃▄▅▆▇█▉▊▋▌▍▎▏▐░▒▓▔▕▖▗▘▙▚▛▜▝▞▟ ⠁⠃⠇⡇⣇⣧⣷⣿⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ⡠⠔⠊⠉⠑⠢⢄ ⣀⣤⣶⣿⣿⣶⣤⣀
🬀🬁🬂🬃🬄🬅🬆🬇🬈🬉🬊🬋🬌🬍🬎🬏🬐🬑🬒🬓🬔🬕🬖🬗🬘🬙🬚🬛🬜🬝🬞🬟🬠🬡🬢🬣🬤🬥🬦🬧🬨🬩🬪🬫🬬🬭🬮🬯🬰🬱🬲🬳🬴🬵🬶🬷🬸🬹🬺🬻
🬼🬽🬾🬿🭀🭁🭂🭃🭄🭅🭆🭇🭈🭉🭊🭋🭌🭍🭎🭏🭐🭑🭒🭓🭔🭕🭖🭗🭘🭙🭚🭛🭜🭝🭞🭟🭠🭡🭢🭣🭤🭥🭦🭧🭨🭩🭪🭫🭬🭭🭮🭯🭰🭱🭲🭳🭴🭵🭶🭷🭸🭹🭺🭻
🭼🭽🭾🭿🮀🮁🮂🮃🮄🮅🮆🮇🮈🮉🮊🮋🮌🮍🮎🮏🮐🮑🮒🮔🮕🮖🮗🮘🮘🮙🮙🮚🮛🮜🮝🮞🮟🮠🮡🮢🮣🮤🮥🮦🮧🮨🮩🮪🮫🮬🮭🮮 \u{1cd00}\u{1cd09}\u{1cd23}\u{1cd57}\u{1cd8a}\u{1cdc1}\u{1cde5}
\x1b[44m one \x1b[34;42m\u{e0b0}\x1b[30m two \x1b[32;41m\u{e0b0}\x1b[97m three \x1b[31;49m\u{e0b0}\x1b[m \u{e0b1} \u{e0b3} \x1b[35m\u{e0b6}\x1b[37;45m round \x1b[35;49m\u{e0b4}\x1b[m \u{e0b5}\u{e0b7} \x1b[36m\u{e0ba}\x1b[30;46m slant \x1b[36;49m\u{e0bc}\x1b[m\u{e0b8}\u{e0be}\u{e0b9}\u{e0bb}\u{e0a0}\u{e0a1}\u{e0a2}
\x1b[4msingle\x1b[m \x1b[4:2mdouble\x1b[m \x1b[4:3mcurly gypq\x1b[m \x1b[4:4mdotted\x1b[m \x1b[4:5mdashed\x1b[m \x1b[4:3;58;5;196mred curl\x1b[m \x1b[9mstrike\x1b[m \x1b[53moverline\x1b[m \x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\
\x1b[1mbold\x1b[m \x1b[2mfaint\x1b[m \x1b[3mitalic\x1b[m \x1b[1;3mboth\x1b[m \x1b[7mreverse\x1b[m \x1b[8mhidden\x1b[m \x1b[1;4;9;31mall\x1b[m \x1b[7;2mrev faint\x1b[m \x1b[38;5;208;48;5;24mindexed\x1b[m \x1b[48;2;90;20;60mtrue\x1b[m selected text
e\u{301}a\u{308}o\u{302}n\u{303} Z\u{351}\u{336} \u{e01}\u{e34} 你好 日本語 한글 ｆｕｌｌ 👍 🎉 👩‍💻 🇩🇪 ❤️ ⚡ ✔ ✗ ●○◐ ⏺⏸⏵⏹ ⎿ ✻ ✳ ✶ ✢ ❯ → ⇒ ∞ ≠ Ωж
";

fn chart() -> Term {
    let mut term = Term::new(Size::new(80, 24), Settings::default());
    for line in CHART.lines() {
        term.feed(line.as_bytes());
        term.feed(b"\x1b[m\r\n");
    }
    for i in 0..80 {
        let (r, g, b) = (255 - i * 255 / 79, i * 255 / 79, 128);
        term.feed(format!("\x1b[48;2;{r};{g};{b}m \x1b[m").as_bytes());
    }
    for i in 0..16 {
        term.feed(format!("\x1b[48;5;{i}m  \x1b[38;5;{i};49m██\x1b[m").as_bytes());
    }
    term.feed(b"\r\n\x1b#6double width \x1b[4mline\x1b[m\r\n");
    term.feed("\x1b#3double ┌─ high\r\n\x1b#4double ┌─ high\r\n".as_bytes());
    term.feed(
        "if (x >= 0 && y != NULL) { return a[i]->b * 0xFF; }  // The quick brown fox, 1lI\r\n".as_bytes(),
    );
    term.feed(b"\x1b]2;vim - notes.txt\x1b\\cursor: \x1b[2 q");
    term
}

/// Writes a picture for people who want to look at it.
fn keep(name: &str, image: &Image) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, image.to_png()).expect("a picture is written");
    path
}

fn read_png(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("a picture to compare with"));
    let mut decoder = png::Decoder::new(file);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().expect("a PNG file");
    let mut data = vec![0; reader.output_buffer_size().expect("a picture of a known size")];
    let info = reader.next_frame(&mut data).expect("the picture");
    data.truncate(info.buffer_size());
    (info.width, info.height, data)
}

fn compare(name: &str, look: Look) {
    let mut raster = Raster::new(Look { system_fonts: false, ..look }).expect("the fonts of the crate");
    raster.draw(&chart()).expect("a picture");
    let drawn = raster.image();
    let new = keep(name, drawn);
    let (width, height, golden) =
        read_png(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name));
    assert_eq!((width, height), (drawn.width(), drawn.height()), "see {}", new.display());
    let off = drawn.pixels().as_flattened().iter().zip(&golden).filter(|(a, b)| a.abs_diff(**b) > TOLERANCE);
    assert_eq!(off.count(), 0, "channels differ; see {}", new.display());
}

#[test]
fn the_chart_looks_as_it_did() {
    let selection = Some(Selection { start: (10, 65), end: (10, 72) });
    compare("chart.png", Look { scale: 2.0, selection, ..Look::default() });
}

#[test]
fn a_light_window_with_small_text_looks_as_it_did() {
    let theme = Theme::named("light").expect("a built-in theme");
    compare("window.png", Look { window: true, theme, ..Look::default() });
}

/// Draws the chart with the fonts of this machine, which differ; the picture is for people.
#[test]
fn the_fonts_of_the_system_give_a_picture_too() {
    let mut raster = Raster::new(Look::default()).expect("fonts");
    raster.draw(&chart()).expect("a picture");
    keep("system.png", raster.image());
    let mut plain = Raster::new(Look { system_fonts: false, ..Look::default() }).expect("fonts");
    plain.draw(&chart()).expect("a picture");
    assert_eq!(raster.extent(Size::new(80, 24)), (plain.image().width(), plain.image().height()));
}
