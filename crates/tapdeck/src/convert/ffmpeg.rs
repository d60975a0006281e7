//! ffmpeg as a program beside this one, for formats that take more than a few lines to write.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::process::{Command, Stdio};

use tapdeck_host::scratch;

use super::{ConvertError, To};

/// So much of what ffmpeg says is repeated.
const MAX_WORDS: u64 = 4096;

/// Filters for all formats: times in milliseconds.
const TIMES: &str = "settb=1/1000";
/// H.264 and VP9 store one colour for four pixels, so both sides have to be even. The last frame
/// would be cut short without a copy at its end.
const EVEN: &str = "settb=1/1000,pad=ceil(iw/2)*2:ceil(ih/2)*2,tpad=stop=1:stop_mode=clone";

/// What ffmpeg is told for a format.
#[rustfmt::skip]
fn options(to: To) -> &'static [&'static str] {
    match to {
        To::Mp4 => &[
            "-vf", EVEN, "-c:v", "libx264", "-preset", "veryfast", "-crf", "20",
            "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4",
        ],
        To::Webm => &[
            "-vf", EVEN, "-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "6",
            "-row-mt", "1", "-crf", "30", "-b:v", "0", "-pix_fmt", "yuv420p", "-f", "webm",
        ],
        _ => &["-vf", TIMES, "-c:v", "libwebp_anim", "-lossless", "1", "-loop", "0", "-f", "webp"],
    }
}

/// Checks that ffmpeg is installed, before the work for it is done.
pub(super) fn check(to: To) -> Result<(), ConvertError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join("ffmpeg").is_file());
    if found { Ok(()) } else { Err(ConvertError::NoFfmpeg(to)) }
}

/// Makes a film in another format of an APNG, which ffmpeg has to be able to seek in.
pub(super) fn encode(to: To, apng: File) -> Result<File, ConvertError> {
    let failed = |e: io::Error| ConvertError::Ffmpeg(format!("{to}: {e}"));
    let (mut film, mut words) = (scratch().map_err(failed)?, scratch().map_err(failed)?);
    #[expect(clippy::disallowed_methods, reason = "ffmpeg is no program of a session")]
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-loglevel", "error"]);
    command.args(["-f", "apng", "-i", "file:/proc/self/fd/0"]);
    // Frames are shown as long as they were: none is repeated at a fixed rate.
    command.args(["-an", "-fps_mode", "vfr", "-enc_time_base", "1:1000"]).args(options(to));
    // A file with a name, because some formats are finished at their beginning.
    command.args(["-y", "file:/proc/self/fd/1"]);
    let files = (film.try_clone().map_err(failed)?, words.try_clone().map_err(failed)?);
    let status = command.stdin(Stdio::from(apng)).stdout(files.0).stderr(files.1).status();
    let status = status.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => ConvertError::NoFfmpeg(to),
        _ => failed(e),
    })?;
    if !status.success() {
        let mut said = Vec::new();
        words.seek(SeekFrom::Start(0)).map_err(failed)?;
        words.take(MAX_WORDS).read_to_end(&mut said).map_err(failed)?;
        let said = tapdeck_term::printable_lines(&String::from_utf8_lossy(&said)).trim().to_owned();
        return Err(failed(io::Error::other(if said.is_empty() { status.to_string() } else { said })));
    }
    film.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(film)
}
