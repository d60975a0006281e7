use proptest::prelude::*;

use super::*;

/// What each frame of a film shows, and how long in milliseconds.
type Shown = Vec<(Vec<[u8; 4]>, u64)>;

fn over(
    canvas: &mut [[u8; 4]],
    width: usize,
    at: (usize, usize),
    size: (usize, usize),
    pixels: &[u8],
    n: usize,
) {
    for y in 0..size.1 {
        for x in 0..size.0 {
            let p = &pixels[(y * size.0 + x) * n..][..n];
            if n < 4 || p[3] == 255 {
                canvas[(at.1 + y) * width + at.0 + x] = [p[0], p[1], p[2], 255];
            }
        }
    }
}

fn read_gif(file: &[u8], (width, height): (u32, u32)) -> Shown {
    let mut options = ::gif::DecodeOptions::new();
    options.set_color_output(::gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(file).expect("a GIF");
    assert_eq!((u32::from(decoder.width()), u32::from(decoder.height())), (width, height));
    let mut canvas = vec![[0; 4]; (width * height) as usize];
    let mut shown = Vec::new();
    while let Some(f) = decoder.read_next_frame().expect("a frame") {
        let (at, size) = ((f.left.into(), f.top.into()), (f.width.into(), f.height.into()));
        over(&mut canvas, width as usize, at, size, &f.buffer, 4);
        shown.push((canvas.clone(), u64::from(f.delay) * 10));
    }
    shown
}

fn read_apng(file: Vec<u8>, (width, height): (u32, u32)) -> Shown {
    let mut reader = png::Decoder::new(io::Cursor::new(file)).read_info().expect("an APNG");
    let frames = reader.info().animation_control().expect("an animation").num_frames;
    let mut canvas = vec![[0; 4]; (width * height) as usize];
    let mut shown = Vec::new();
    let mut data = vec![0; (width * height * 3) as usize];
    for _ in 0..frames {
        reader.next_frame(&mut data).expect("a frame");
        let f = *reader.info().frame_control().expect("a frame's place");
        let (at, size) = ((f.x_offset as usize, f.y_offset as usize), (f.width as usize, f.height as usize));
        over(&mut canvas, width as usize, at, size, &data, 3);
        shown.push((canvas.clone(), u64::from(f.delay_num) * 1000 / u64::from(f.delay_den)));
    }
    shown
}

/// A picture that differs from the last one by a rectangle.
#[derive(Debug, Clone)]
struct Step {
    rect: (i32, i32, i32, i32),
    colour: [u8; 3],
    pause: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let rect = (0..60, 0..40, 1..30, 1..20).prop_map(|(x, y, w, h)| (x, y, x + w, y + h));
    let colour = prop_oneof![Just([0; 3]), Just([255; 3]), any::<[u8; 3]>()];
    (rect, colour, 2..70_u64).prop_map(|(rect, colour, pause)| Step { rect, colour, pause: pause * 10 })
}

fn film<E: Encoder>(encoder: E, steps: &[Step]) -> (E::Done, Shown) {
    let mut film = Film::new(encoder, 64, 44, Rgb(1, 2, 3));
    let mut image = Image::new(64, 44, [9, 9, 9, 255]);
    let mut want: Shown = Vec::new();
    let mut at = 0;
    for Step { rect, colour: [r, g, b], pause } in steps {
        let before = image.clone();
        image.fill(rect.0, rect.1, rect.2, rect.3, [*r, *g, *b, 255]);
        let rows = Damage::Rows(std::iter::once(rect.1.min(44) as u32..rect.3.min(44) as u32).collect());
        let made = film.show(&image, &rows, Duration::from_millis(at)).expect("a frame");
        assert_eq!(made, image != before || want.is_empty());
        match want.last_mut() {
            Some(last) if !made => last.1 += pause,
            _ => want.push((image.pixels().to_vec(), *pause)),
        }
        at += pause;
    }
    assert_eq!(film.frames() as usize, want.len());
    (film.finish(Duration::from_millis(at)).expect("the end"), want)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Frames hold only what changed; put together they are the pictures that went in.
    #[test]
    fn films_show_what_was_put_in(steps in prop::collection::vec(step(), 1..12)) {
        let (file, want) = film(Gif::new(Vec::new(), 64, 44).expect("a GIF"), &steps);
        prop_assert_eq!(read_gif(&file, (64, 44)), want);
        let ((mut file, frames), want) = film(Apng::new(Vec::new(), 64, 44, 6).expect("an APNG"), &steps);
        let count = Apng::<Vec<u8>>::count(frames);
        file.splice(Apng::<Vec<u8>>::COUNT_AT as usize..Apng::<Vec<u8>>::COUNT_AT as usize + count.len(), count);
        prop_assert_eq!(read_apng(file, (64, 44)), want);
    }
}

/// A picture of another size stands at the top left, and what it leaves free is the backdrop.
#[test]
fn pictures_of_other_sizes_and_transparent_ones_are_put_on_the_backdrop() {
    let mut film = Film::new(Gif::new(Vec::new(), 4, 2).expect("a GIF"), 4, 2, Rgb(10, 20, 30));
    let rows = Damage::Rows(Vec::new());
    film.show(&Image::new(4, 2, [200, 0, 0, 255]), &Damage::All, Duration::ZERO).expect("a frame");
    film.show(&Image::new(2, 3, [0, 0, 0, 0]), &rows, Duration::from_millis(50)).expect("a frame");
    film.show(&Image::new(9, 1, [90, 90, 90, 255]), &rows, Duration::from_millis(90)).expect("a frame");
    let file = film.finish(Duration::from_millis(200)).expect("the end");
    let shown = read_gif(&file, (4, 2));
    let (back, grey) = ([10, 20, 30, 255], [90, 90, 90, 255]);
    assert_eq!(shown[0], (vec![[200, 0, 0, 255]; 8], 50));
    assert_eq!(shown[1], (vec![back; 8], 40));
    assert_eq!(shown[2], ([[grey; 4], [back; 4]].concat(), 110));
}

/// A GIF counts hundredths of seconds, but its frames do not drift away from their times.
#[test]
fn delays_add_up() {
    let mut film = Film::new(Gif::new(Vec::new(), 1, 1).expect("a GIF"), 1, 1, Rgb(0, 0, 0));
    for i in 0..=30_u64 {
        let image = Image::new(1, 1, [i as u8, 0, 0, 255]);
        film.show(&image, &Damage::All, Duration::from_secs(i) / 30).expect("a frame");
    }
    let file = film.finish(Duration::from_secs(2)).expect("the end");
    let shown = read_gif(&file, (1, 1));
    assert_eq!(shown.iter().map(|(_, delay)| delay).sum::<u64>(), 2000);
}
