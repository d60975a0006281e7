//! The snapshot door with good clients, bad ones and many of them; no session behind it.

#![allow(missing_docs, reason = "tests explain themselves by their names")]
#![allow(clippy::disallowed_methods, reason = "tests take the time")]

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use tapdeck_serve::snapshot::{
    Address, AskError, Door, Limits, MAX_FRAME, MAX_LABEL, Request, Response, Server, Snapshot, Taken,
    WireError, ask,
};

const PATIENCE: Duration = Duration::from_secs(20);

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("run/tapdeck/s.sock")
    }

    fn address(&self) -> Address {
        Address::Unix(self.socket())
    }

    /// A server that answers each snapshot with its label's length.
    fn serve(&self, limits: Limits) -> Server {
        let door = Door::unix(&self.socket()).expect("bound");
        Server::start(door, limits, |s| Response::Success(taken(&s))).expect("started")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream
    }
}

fn taken(request: &Request) -> Taken {
    let (id, text) = match request {
        Request::Snapshot(s) => (s.id, &s.label),
        Request::Instruction(i) => (i.id, &i.text),
    };
    Taken { id, anchor_byte: text.len() as u64, ts_ns: 1 }
}

fn snapshot(id: u64, label: &str) -> Request {
    Snapshot { id, label: label.into() }.into()
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("short").to_le_bytes()[..], bytes].concat()
}

/// The next answer; `None` at the end of the stream.
fn answer(stream: &mut UnixStream) -> Option<Response> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; u32::from_le_bytes(head) as usize];
    stream.read_exact(&mut body).expect("a whole answer");
    Some(Response::from_bytes(&body).expect("an answer"))
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn several_requests_on_one_connection() {
    let place = Place::new();
    let _server = place.serve(Limits::default());
    let mut stream = place.connect();
    for id in 0..50 {
        let snapshot = snapshot(id, &"x".repeat(id as usize));
        stream.write_all(&snapshot.to_frame().expect("fits")).expect("sent");
        assert_eq!(answer(&mut stream), Some(Response::Success(taken(&snapshot))));
    }
    // All at once, and byte by byte.
    let both = [snapshot(1, "a"), snapshot(2, "bc")].map(|s| s.to_frame().expect("fits")).concat();
    for piece in [both.len(), 1] {
        both.chunks(piece).for_each(|bytes| stream.write_all(bytes).expect("sent"));
        for s in [snapshot(1, "a"), snapshot(2, "bc")] {
            assert_eq!(answer(&mut stream), Some(Response::Success(taken(&s))));
        }
    }
    let longest = snapshot(3, &"x".repeat(MAX_LABEL));
    assert_eq!(ask(&place.address(), &longest, PATIENCE).expect("taken"), taken(&longest));
}

#[test]
fn what_cannot_be_read_is_answered_and_the_next_is_served() {
    let place = Place::new();
    let _server = place.serve(Limits::default());
    let mut stream = place.connect();
    for bytes in [&b""[..], b"\x01", b"\x00\x01\x02", b"\xff\xff\xff\xff", &[0; 13], &vec![7; MAX_FRAME]] {
        stream.write_all(&frame(bytes)).expect("sent");
        let why = Request::from_bytes(bytes).expect_err("it is no request").to_string();
        assert_eq!(answer(&mut stream), Some(Response::Failure(why)));
    }
    let good = snapshot(9, "still here");
    stream.write_all(&good.to_frame().expect("fits")).expect("sent");
    assert_eq!(answer(&mut stream), Some(Response::Success(taken(&good))));
}

#[test]
fn a_length_that_cannot_be_ends_the_connection_with_a_reason() {
    let place = Place::new();
    let _server = place.serve(Limits::default());
    for length in [65_537u32, 1 << 24, u32::MAX] {
        let mut stream = place.connect();
        stream.write_all(&length.to_le_bytes()).expect("sent");
        // With more behind it: the answer must not be lost to a reset.
        let _ = stream.write_all(&[0; 10_000]);
        let why = WireError::TooLong(length.into()).to_string();
        assert_eq!(answer(&mut stream), Some(Response::Failure(why)));
        assert_eq!(answer(&mut stream), None, "closed");
    }
    ask(&place.address(), &snapshot(1, ""), PATIENCE).expect("others are served");
}

#[test]
fn a_request_cut_at_any_byte_harms_no_client() {
    let place = Place::new();
    let _server = place.serve(Limits::default());
    let whole = snapshot(1, "label").to_frame().expect("fits");
    for cut in 0..whole.len() {
        let mut stream = place.connect();
        stream.write_all(&whole[..cut]).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        assert_eq!(answer(&mut stream), None, "cut at {cut}");
        // And gone without a word.
        place.connect().write_all(&whole[..cut]).expect("sent");
        place.connect().write_all(&whole).expect("sent, and not waited for");
    }
    ask(&place.address(), &snapshot(1, ""), PATIENCE).expect("others are served");
}

/// A byte now and then must not buy more time than silence does.
#[test]
fn slow_clients_lose_their_place_and_hold_up_no_other() {
    let place = Place::new();
    let limits = Limits::default().frame(Duration::from_millis(300));
    let _server = place.serve(limits);
    let start = Instant::now();
    let mut slow = place.connect();
    slow.write_all(&[20, 0]).expect("sent");
    let mut dripping = place.connect();
    let mut drips = dripping.try_clone().expect("a second hold");
    let drip = std::thread::spawn(move || {
        let bytes = frame(&[0; 2000]);
        bytes
            .iter()
            .take_while(|b| {
                std::thread::sleep(Duration::from_millis(10));
                drips.write_all(&[**b]).is_ok()
            })
            .count()
    });
    for id in 0..20 {
        ask(&place.address(), &snapshot(id, ""), PATIENCE).expect("others are served");
    }
    for stream in [&mut slow, &mut dripping] {
        let said = answer(stream);
        assert!(matches!(&said, Some(Response::Failure(why)) if why.contains("did not come")), "{said:?}");
        assert_eq!(answer(stream), None, "closed");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(drip.join().expect("it ends") < 2000, "it was cut off");
}

#[test]
fn silent_clients_make_room() {
    let place = Place::new();
    let patience = Duration::from_millis(100);
    let _server = place.serve(Limits::default().clients(4).patience(patience));
    let mut silent: Vec<UnixStream> = (0..40).map(|_| place.connect()).collect();
    silent.iter_mut().step_by(2).for_each(|s| s.write_all(&[1]).expect("sent"));
    ask(&place.address(), &snapshot(1, "x"), PATIENCE).expect("served in the end");
}

#[test]
fn more_clients_than_places_are_all_served() {
    let place = Place::new();
    let _server = place.serve(Limits::default().clients(8));
    let address = place.address();
    let threads: Vec<_> = (0..200)
        .map(|id| {
            let address = address.clone();
            std::thread::spawn(move || {
                let snapshot = snapshot(id, &"y".repeat(id as usize));
                assert_eq!(ask(&address, &snapshot, PATIENCE).expect("served"), taken(&snapshot));
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("each is answered");
    }
}

#[test]
fn a_request_in_hand_is_answered_before_the_end_and_the_socket_goes() {
    let place = Place::new();
    let door = Door::unix(&place.socket()).expect("bound");
    let (entered, in_hand) = channel();
    let server = Server::start(door, Limits::default(), move |s| {
        let _ = entered.send(());
        std::thread::sleep(Duration::from_millis(200));
        Response::Success(taken(&s))
    })
    .expect("started");
    let _idle = place.connect();
    let address = place.address();
    let client = std::thread::spawn(move || ask(&address, &snapshot(5, "five"), PATIENCE));
    in_hand.recv().expect("it is being served");
    drop(server);
    assert_eq!(client.join().expect("it ends").expect("answered"), taken(&snapshot(5, "five")));
    assert!(!place.socket().exists());
    let gone = ask(&place.address(), &snapshot(6, ""), PATIENCE);
    assert!(matches!(gone, Err(AskError::NotListening(_))), "{gone:?}");
}

#[test]
fn sockets_are_private_and_those_of_others_untouched() {
    let place = Place::new();
    let path = place.socket();
    let folder = path.parent().expect("a folder").to_owned();
    let door = Door::unix(&path).expect("bound");
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    let second = Door::unix(&path).expect_err("a live socket is respected");
    assert_eq!(second.kind(), std::io::ErrorKind::AddrInUse, "{second}");
    drop(door);
    assert!(!path.exists());

    drop(UnixListener::bind(&path).expect("bound"));
    assert!(path.exists(), "what a killed recorder leaves behind");
    drop(Door::unix(&path).expect("a stale socket is replaced"));

    std::fs::write(&path, "precious").expect("written");
    assert!(Door::unix(&path).is_err());
    assert_eq!(std::fs::read(&path).expect("it is there"), b"precious");
    std::fs::remove_file(&path).expect("removed");

    let elsewhere = folder.join("elsewhere");
    drop(UnixListener::bind(&elsewhere).expect("bound"));
    symlink(&elsewhere, &path).expect("linked");
    assert!(Door::unix(&path).is_err(), "a link is not followed");
    assert!(elsewhere.exists());
    std::fs::remove_file(&path).expect("removed");

    let link = place.0.path().join("link");
    symlink(&folder, &link).expect("linked");
    assert!(Door::unix(&link.join("s.sock")).is_err(), "nor is one to a folder");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("set");
    let open = Door::unix(&path).expect_err("a folder that others can enter is refused");
    assert!(open.to_string().contains("a folder of your own"), "{open}");
}

/// Another socket that took our name is not ours to remove.
#[test]
fn only_the_own_socket_is_removed() {
    let place = Place::new();
    let door = Door::unix(&place.socket()).expect("bound");
    std::fs::remove_file(place.socket()).expect("removed");
    let _other = UnixListener::bind(place.socket()).expect("bound");
    drop(door);
    assert!(place.socket().exists());
}

#[test]
fn tcp_works_on_this_machine_only() {
    let address: Address = "tcp:127.0.0.1:0".parse().expect("an address");
    let door = Door::bind(&address).expect("bound");
    let server = Server::start(door, Limits::default(), |s| Response::Success(taken(&s))).expect("started");
    let address: Address = server.address().to_string().parse().expect("what is shown can be read");
    assert_eq!(ask(&address, &snapshot(1, "tcp"), PATIENCE).expect("served"), taken(&snapshot(1, "tcp")));
    for wrong in ["tcp:0.0.0.0:0", "tcp:192.0.2.1:1", "tcp:[::]:1", "tcp:", "tcp:127.0.0.1", "", "unix:"] {
        assert!(wrong.parse::<Address>().is_err(), "{wrong:?}");
    }
    assert!(Door::tcp("0.0.0.0:0".parse().expect("an address")).is_err());
}

#[test]
fn a_refusal_carries_its_reason() {
    let place = Place::new();
    let door = Door::unix(&place.socket()).expect("bound");
    let _server = Server::start(door, Limits::default(), |_| Response::Failure("the disk is full".into()));
    let refused = ask(&place.address(), &snapshot(1, ""), PATIENCE);
    assert!(matches!(&refused, Err(AskError::Refused(why)) if why == "the disk is full"), "{refused:?}");
}
