//! The output of a program without a terminal: frames of standard output and standard error, each
//! behind eight bytes that say which it is and how long. Nothing is kept but where in a frame the
//! stream is.

use std::io;

use tapdeck_core::Stream;

/// Where in the stream of frames a reader is.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; 8],
    have: usize,
    left: usize,
}

/// What a reader of the stream below found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    Bytes(usize),
    Nothing,
    End,
}

impl Frames {
    /// Reads the next bytes of a frame through `take`, which reads from the stream below.
    pub(super) fn read(
        &mut self,
        buf: &mut [u8],
        mut take: impl FnMut(&mut [u8]) -> io::Result<Took>,
    ) -> io::Result<(Stream, Took)> {
        loop {
            if self.left > 0 {
                let n = buf.len().min(self.left);
                let took = take(&mut buf[..n])?;
                if let Took::Bytes(n) = took {
                    self.left -= n;
                }
                return Ok((self.stream(), took));
            }
            if self.have == 8 {
                self.have = 0;
            }
            match take(&mut self.head[self.have..])? {
                Took::Bytes(n) => self.have += n,
                other => return Ok((Stream::Out, other)),
            }
            if self.have == 8 {
                if self.head[0] > 2 || self.head[1..4] != [0; 3] {
                    let what = "what the engine sends is no output of a program";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                let length = [self.head[4], self.head[5], self.head[6], self.head[7]];
                self.left = u32::from_be_bytes(length) as usize;
            }
        }
    }

    fn stream(&self) -> Stream {
        if self.head[0] == 2 { Stream::Err } else { Stream::Out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_apart_however_they_are_cut() {
        let mut wire = Vec::new();
        let frames: [(u8, &[u8]); 5] = [(1, b"out"), (2, b"err!"), (1, b""), (0, b"in"), (1, &[7; 300])];
        for (kind, bytes) in frames {
            wire.extend([kind, 0, 0, 0]);
            wire.extend((bytes.len() as u32).to_be_bytes());
            wire.extend(bytes);
        }
        for cut in 1..20 {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut frames = Frames::default();
            let mut rest = wire.as_slice();
            loop {
                let mut buf = [0; 64];
                let (stream, took) = frames
                    .read(&mut buf, |buf| {
                        let n = buf.len().min(cut).min(rest.len());
                        buf[..n].copy_from_slice(&rest[..n]);
                        rest = &rest[n..];
                        Ok(if n == 0 { Took::End } else { Took::Bytes(n) })
                    })
                    .expect("frames");
                let Took::Bytes(n) = took else { break };
                let to = if stream == Stream::Out { &mut out } else { &mut err };
                to.extend_from_slice(&buf[..n]);
            }
            assert_eq!(err, b"err!");
            assert_eq!(out, [b"outin".to_vec(), vec![7; 300]].concat());
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut frames = Frames::default();
        let result = frames.read(&mut [0; 8], |buf| {
            buf.fill(b'x');
            Ok(Took::Bytes(buf.len()))
        });
        assert!(result.is_err());
    }
}
