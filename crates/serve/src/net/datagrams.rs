//! Datagrams and a timer behind one descriptor, which is readable when one of them needs attention.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn::udp::{self, RecvMeta, UdpSocketState};
use quinn_proto::Transmit;
use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::quic;

/// The most bytes of one receive: the kernel joins datagrams up to the size of the largest.
const MESSAGE: usize = 64 * 1024;
/// Receives at a time, and how often in a row before the caller gets its turn.
const BATCH: usize = 8;
const ROUNDS: usize = 4;

/// A non-blocking socket and a timer.
pub(super) struct Datagrams {
    socket: UdpSocket,
    state: UdpSocketState,
    timer: OwnedFd,
    /// When the timer fires.
    armed: Option<Instant>,
    /// An epoll descriptor with both.
    both: OwnedFd,
    inbox: Box<[u8]>,
    outbox: Vec<u8>,
    /// Datagrams in the outbox that found no room.
    unsent: Option<Transmit>,
}

impl Datagrams {
    /// Makes a socket from which this address can be reached.
    pub(super) fn open(to: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(quic::any(to))?;
        let state = UdpSocketState::new((&socket).into())?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&both, &socket, data, epoll::EventFlags::IN)?;
        epoll::add(&both, &timer, data, epoll::EventFlags::IN)?;
        Ok(Self {
            socket,
            state,
            timer,
            armed: None,
            both,
            // Pages that nothing is received into are never touched.
            inbox: vec![0; MESSAGE * BATCH].into(),
            outbox: Vec::new(),
            unsent: None,
        })
    }

    /// Returns whether datagrams are never fragmented, so that their size can be probed.
    pub(super) fn are_whole(&self) -> bool {
        !self.state.may_fragment()
    }

    /// Hands on what has arrived, up to a limit. The descriptor stays readable if there is more.
    pub(super) fn receive(&mut self, mut each: impl FnMut(&RecvMeta, BytesMut)) -> io::Result<()> {
        let mut metas = [RecvMeta::default(); BATCH];
        for _ in 0..ROUNDS {
            let mut pieces = self.inbox.chunks_mut(MESSAGE);
            let mut bufs: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
            let came = match self.state.recv((&self.socket).into(), &mut bufs, &mut metas) {
                Ok(came) => came,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Any machine can cause this error by ICMP, so it means nothing.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => continue,
                Err(e) => return Err(e),
            };
            for (meta, buf) in metas.iter().zip(&bufs).take(came) {
                let mut joined = BytesMut::from(&buf[..meta.len.min(buf.len())]);
                while !joined.is_empty() {
                    let one = joined.split_to(meta.stride.clamp(1, joined.len()));
                    each(meta, one);
                }
            }
            if came < BATCH {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends the outbox, as far as there is room. The descriptor reports room for the rest.
    pub(super) fn send(
        &mut self,
        mut next: impl FnMut(usize, &mut Vec<u8>) -> Option<Transmit>,
    ) -> io::Result<()> {
        let waited = self.unsent.is_some();
        loop {
            let transmit = match self.unsent.take() {
                Some(transmit) => transmit,
                None => {
                    self.outbox.clear();
                    match next(self.state.max_gso_segments().min(quic::BURST), &mut self.outbox) {
                        Some(transmit) => transmit,
                        None => break,
                    }
                }
            };
            let sending = udp::Transmit {
                destination: transmit.destination,
                ecn: transmit.ecn.and_then(|e| udp::EcnCodepoint::from_bits(e as u8)),
                contents: &self.outbox[..transmit.size],
                segment_size: transmit.segment_size,
                src_ip: transmit.src_ip,
            };
            match self.state.send((&self.socket).into(), &sending) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some(transmit);
                    break;
                }
                // A datagram that cannot be sent for another reason counts as lost on the way.
                _ => {}
            }
        }
        let waits = self.unsent.is_some();
        if waits != waited {
            let mut flags = epoll::EventFlags::IN;
            flags.set(epoll::EventFlags::OUT, waits);
            epoll::modify(&self.both, &self.socket, epoll::EventData::new_u64(0), flags)?;
        }
        Ok(())
    }

    /// Makes the descriptor readable at this time at the latest. It may be earlier: a spurious
    /// timer costs less than one that is set for every datagram.
    pub(super) fn wake_at(&mut self, at: Option<Instant>, now: Instant) -> io::Result<()> {
        let has_rung = self.armed.is_some_and(|armed| armed <= now);
        let sooner = at.is_some_and(|at| self.armed.is_none_or(|armed| at < armed));
        if !has_rung && !sooner {
            return Ok(());
        }
        // Zero would disarm the timer.
        let least = Duration::from_nanos(1);
        let left = at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now).max(least));
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.armed = at;
        Ok(())
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.both.as_fd()
    }
}
