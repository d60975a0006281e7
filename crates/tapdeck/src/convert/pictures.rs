//! Recordings as pictures: stills, and films of which only what changed is drawn and written.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_host::is_stream;
use tapdeck_raster::film::{Apng, Encoder, Film, Gif};
use tapdeck_raster::{Image, Look, Raster, RasterError};
use tapdeck_tape::cast::theme_of;
use tapdeck_tape::{EventReader, Item, Kind, Replay};
use tapdeck_term::{Rgb, Size};

use super::{Conversion, ConvertError, Main, To, Watched, ffmpeg};

/// Frames a second, unless something else is asked for.
pub(super) const FPS: u32 = 30;
/// The shades of text in a GIF, so that a frame's colours fit into its palette.
const GIF_SHADES: u8 = 12;
/// How hard the frames of an APNG are compressed, and of one that only ffmpeg reads.
const LEVEL: u32 = 6;
const PASSING: u32 = 1;
/// How long the last frame stays before the film begins again.
const REST: Duration = Duration::from_secs(2);
/// A program that redraws as one update is waited for, but not longer than this.
const UPDATE: Duration = Duration::from_millis(500);

impl From<RasterError> for ConvertError {
    fn from(e: RasterError) -> Self {
        Self::Picture(e.to_string())
    }
}

/// Why a film was not shot.
enum ShotError {
    Tape(tapdeck_tape::Error),
    Picture(RasterError),
    Write(io::Error),
    Ffmpeg(ConvertError),
}

impl From<ConvertError> for ShotError {
    fn from(e: ConvertError) -> Self {
        Self::Ffmpeg(e)
    }
}

impl From<tapdeck_tape::Error> for ShotError {
    fn from(e: tapdeck_tape::Error) -> Self {
        Self::Tape(e)
    }
}

impl From<RasterError> for ShotError {
    fn from(e: RasterError) -> Self {
        Self::Picture(e)
    }
}

impl From<io::Error> for ShotError {
    fn from(e: io::Error) -> Self {
        Self::Write(e)
    }
}

impl Conversion {
    /// Sets how pictures look. Its theme counts only if [`Conversion::theme`] sets none and the
    /// recording carries none.
    #[must_use]
    pub fn look(mut self, look: Look) -> Self {
        self.look = look;
        self
    }

    /// Sets how many frames a second a film has at most, from 1 to 50. 30 by default.
    #[must_use]
    pub fn fps(mut self, fps: u32) -> Self {
        self.fps = fps.clamp(1, 50);
        self
    }

    /// Draws the last screen, instead of writing a file.
    ///
    /// # Errors
    /// When the recording cannot be read, or the picture would be too large.
    pub fn image(mut self) -> Result<Image, ConvertError> {
        let opened = self.open()?;
        let mut reader = self.watch(opened.reader, opened.count, opened.total);
        let image = self.draw_last(&mut reader)?;
        self.stop_if_broken(&reader)?;
        Ok(image)
    }

    /// The size of a film, for which the recording is read once more; a stream cannot be.
    pub(super) fn largest_screen(&self) -> Result<Option<Size>, ConvertError> {
        if !self.to.is_film() || is_stream(&self.input) {
            return Ok(None);
        }
        let mut opened = self.open()?;
        let mut largest = opened.reader.header().size.unwrap_or_default();
        // A recording that breaks off is complained of when the film is shot.
        while let Ok(Some(item)) = opened.reader.next_item() {
            if let Item::Event(event) = item
                && let Kind::Resize(size) = event.kind
            {
                largest = Size::new(largest.cols.max(size.cols), largest.rows.max(size.rows));
            }
        }
        Ok(Some(largest))
    }

    fn raster(&self, reader: &dyn EventReader, shades: u8) -> Result<Raster, RasterError> {
        let theme = self.theme.or_else(|| theme_of(reader.header())).unwrap_or(self.look.theme);
        Raster::new(Look { theme, shades, ..self.look.clone() })
    }

    fn draw_last(&self, reader: &mut Watched) -> Result<Image, ConvertError> {
        let mut raster = self.raster(reader, self.look.shades)?;
        let replay = Replay::to_end(reader, 0).map_err(|e| self.reading_failed(e))?;
        raster.draw(replay.term())?;
        Ok(raster.image().clone())
    }

    /// Writes a picture of the last screen.
    pub(super) fn still(&self, reader: &mut Watched, main: &mut Main<'_>) -> Result<(), ConvertError> {
        let image = self.draw_last(reader)?;
        self.stop_if_broken(reader)?;
        main.put(&image.to_png())
    }

    /// Writes a film, as large as the largest screen.
    pub(super) fn film(
        &self,
        reader: &mut Watched,
        largest: Option<Size>,
        main: &mut Main<'_>,
    ) -> Result<(), ConvertError> {
        let shades = if self.to == To::Gif { GIF_SHADES } else { self.look.shades };
        let raster = self.raster(reader, shades)?;
        let size = largest.or(reader.header().size).unwrap_or_default();
        let (width, height) = raster.extent(size);
        let shot = match self.to {
            To::Gif => (|| {
                let gif = Gif::new(BufWriter::new(&mut *main), width, height)?;
                let mut out = self.shoot(reader, raster, gif, (width, height))?;
                Ok(out.flush()?)
            })(),
            to => (|| {
                if to != To::Apng {
                    ffmpeg::check(to)?;
                }
                let mut file = self.shoot_apng(reader, raster, (width, height))?;
                if to != To::Apng {
                    file = ffmpeg::encode(to, file)?;
                }
                io::copy(&mut file, main)?;
                Ok(())
            })(),
        };
        shot.map_err(|e| match e {
            ShotError::Tape(e) => self.reading_failed(e),
            ShotError::Picture(e) => e.into(),
            ShotError::Write(e) => ConvertError::write(main.path())(e),
            ShotError::Ffmpeg(e) => e,
        })
    }

    /// Shoots an APNG into a scratch file, because the number of frames stands in front of them.
    fn shoot_apng(&self, reader: &mut Watched, raster: Raster, size: (u32, u32)) -> Result<File, ShotError> {
        let level = if self.to == To::Apng { LEVEL } else { PASSING };
        let apng = Apng::new(BufWriter::new(tapdeck_host::scratch()?), size.0, size.1, level)?;
        let (out, frames) = self.shoot(reader, raster, apng, size)?;
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(Apng::<Vec<u8>>::COUNT_AT))?;
        file.write_all(&Apng::<Vec<u8>>::count(frames))?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    fn shoot<E: Encoder>(
        &self,
        reader: &mut Watched,
        mut raster: Raster,
        encoder: E,
        (width, height): (u32, u32),
    ) -> Result<E::Done, ShotError> {
        let mut film = Film::new(encoder, width, height, backdrop(raster.look()));
        let mut replay = Replay::new(reader.header(), 0);
        let step = Duration::from_secs(1) / self.fps;
        let mut due = None::<Time>;
        let mut end = Time::ZERO;
        while let Some(item) = reader.next_item()? {
            if let Item::Event(event) = &item {
                end = event.time;
                if let Some(start) = due
                    && event.time >= start + step
                    && !(replay.term().modes().synchronised() && event.time < start + UPDATE)
                {
                    let damage = raster.draw(replay.term())?;
                    film.show(raster.image(), &damage, start.since_start())?;
                    due = None;
                }
                if matches!(event.kind, Kind::Output(_) | Kind::Resize(_)) {
                    due.get_or_insert(event.time);
                }
            }
            replay.item(item);
        }
        let damage = raster.draw(replay.term())?;
        film.show(raster.image(), &damage, due.unwrap_or(end).since_start())?;
        let end = due.map_or(end, |start| end.max(start + step));
        Ok(film.finish(end.since_start() + REST)?)
    }
}

/// What lies behind a window, and where a smaller screen leaves room.
fn backdrop(look: &Look) -> Rgb {
    match (look.window, look.theme.is_light()) {
        (false, _) => look.theme.background,
        (true, true) => Rgb(0xff, 0xff, 0xff),
        (true, false) => Rgb(0x3a, 0x40, 0x4d),
    }
}

/// Several pictures in one, in rows from the left. Each has the room of the largest.
///
/// # Errors
/// When the sheet would have more than 67 million pixels.
pub fn sheet(images: &[Image], columns: u32, look: &Look) -> Result<Image, ConvertError> {
    let gap = (12.0 * look.scale) as u32;
    let columns = columns.max(1);
    let rows = (images.len() as u32).div_ceil(columns);
    let side = |f: fn(&Image) -> u32| images.iter().map(f).max().unwrap_or(0);
    let (w, h) = (side(Image::width), side(Image::height));
    let total = |n: u32, side: u32| u64::from(n) * u64::from(side + gap) + u64::from(gap);
    let (width, height) = (total(columns, w), total(rows, h));
    if width * height > 1 << 26 {
        let why =
            format!("a sheet of {width} by {height} pixels is too large; the limit is 67 million pixels");
        return Err(ConvertError::Picture(why));
    }
    let Rgb(r, g, b) = backdrop(&Look { window: true, ..look.clone() });
    let mut sheet = Image::new(width as u32, height as u32, [r, g, b, 255]);
    for (i, image) in (0_u32..).zip(images) {
        sheet.put(gap + i % columns * (w + gap), gap + i / columns * (h + gap), image);
    }
    Ok(sheet)
}
