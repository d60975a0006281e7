use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const OFFICE: u8 = 7;

fn net(n: u8) -> Source {
    Source::Net(Ipv4Addr::new(192, 0, 2, n).into())
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn policy(startups: Startups) -> Policy {
    Policy::new(Limits::default().startups(startups).per_source(4))
}

const SMALL: Startups = Startups { start: 8, rate: 0, full: 8 };

#[test]
fn sources_are_addresses_and_networks() {
    let of = |text: &str| Source::of(Some(text.parse().expect("an address")));
    assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:2]:9"));
    assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
    assert_eq!(of("[::ffff:192.0.2.7]:1"), net(OFFICE), "a mapped address is that address");
    assert_ne!(of("192.0.2.7:1"), of("192.0.2.8:1"));
    for shared in ["127.0.0.1:1", "127.3.2.1:1", "[::1]:1", "[::ffff:127.0.0.1]:5"] {
        assert!(of(shared).is_shared(), "{shared}");
    }
    assert!(Source::of(None).is_shared() && !net(OFFICE).is_shared());
}

#[test]
fn start_rate_and_full_are_read_and_shown() {
    assert_eq!(Startups::default().to_string().parse(), Ok(Startups::default()));
    assert_eq!("1:100:2".parse(), Ok(Startups { start: 1, rate: 100, full: 2 }));
    for wrong in ["", "10", "10:30", "10:101:20", "20:30:10", "0:0:0", "a:b:c", "1:2:3:4", "-1:2:3"] {
        assert_eq!(wrong.parse::<Startups>(), Err(StartupsError), "{wrong}");
    }
}

/// A hundred silent connections locked out every other client until their time was over.
#[test]
fn a_newcomer_is_seated_and_the_one_that_waited_longest_makes_room() {
    let mut policy = policy(SMALL);
    let loopback = Source::of(Some(([127, 0, 0, 1], 1).into()));
    let first: Vec<Ticket> =
        (0..8).map(|n| policy.enter(loopback, false, at(n)).expect("a seat").ticket).collect();
    // Each has a turn that no newcomer can take.
    assert_eq!(policy.wait(at(8)), Some(TURN - Duration::from_millis(8)));
    let later = at(250);
    assert_eq!(policy.wait(later), None);
    let entered = policy.enter(loopback, false, later).expect("a seat");
    assert_eq!(entered.evicted, Some(first[0]));
    // One that authenticates is out of reach.
    policy.admit(first[1]).expect("room");
    policy.admit(first[1]).expect("it stays admitted");
    assert_eq!(policy.enter(loopback, false, later).expect("a seat").evicted, None);
    assert_eq!(policy.enter(loopback, false, later).expect("a seat").evicted, Some(first[2]));
}

#[test]
fn the_largest_crowd_makes_room() {
    let mut policy = policy(SMALL);
    let quiet = policy.enter(net(1), false, at(0)).expect("a seat").ticket;
    let loopback = Source::of(Some(([127, 0, 0, 1], 1).into()));
    for _ in 0..7 {
        policy.enter(loopback, false, at(1)).expect("a seat");
    }
    for n in 0..100 {
        let entered = policy.enter(loopback, false, at(1000 + n)).expect("a seat");
        assert_ne!(entered.evicted, Some(quiet), "the older one of the smaller crowd stays");
    }
    assert!(policy.pending.contains_key(&quiet));
}

#[test]
fn a_source_has_few_seats_and_cannot_take_those_of_others() {
    let mut policy = policy(SMALL);
    let mine: Vec<Ticket> =
        (0..4).map(|_| policy.enter(net(1), false, at(0)).expect("a seat").ticket).collect();
    assert_eq!(policy.enter(net(1), false, at(1)), Err(TurnedAway::TooManyOfSource));
    assert_eq!(policy.enter(net(2), false, at(1)).expect("a seat").evicted, None);
    let entered = policy.enter(net(1), false, at(300)).expect("a seat");
    assert_eq!(entered.evicted, Some(mine[0]));
}

#[test]
fn connections_are_dropped_early_by_chance() {
    let startups = Startups { start: 10, rate: 30, full: 100 };
    let dropped = |pending: usize| {
        let mut policy = Policy::new(Limits::default().startups(startups));
        let mut dropped = 0;
        for _ in 0..2000 {
            while policy.pending.len() < pending {
                policy.next += 1;
                let pending =
                    Connection { source: Source::Local, came: Time::ZERO, anonymous: false, failures: 0 };
                policy.pending.insert(policy.next, pending);
                *policy.crowds.entry(Source::Local).or_default() += 1;
            }
            let entered = policy.enter(Source::Local, false, at(1000)).expect("a seat");
            dropped += usize::from(entered.evicted.is_some());
            policy.leave(entered.ticket, at(1000));
        }
        dropped
    };
    assert_eq!(dropped(9), 0);
    assert!((400..800).contains(&dropped(10)), "about 30 percent");
    assert!((1100..1500).contains(&dropped(55)), "about 65 percent");
    assert_eq!(dropped(100), 2000);
}

/// Tokens could be guessed without any delay.
#[test]
fn failures_are_delayed_and_then_locked_out_for_a_while() {
    let mut policy = policy(Startups::default());
    let mut fail = |source, now| {
        let ticket = policy.enter(source, false, now).map(|entered| entered.ticket);
        let delay = ticket.map(|ticket| {
            let failure = policy.fail(ticket, now);
            policy.leave(ticket, now);
            failure.delay
        });
        delay.map(|delay| delay.as_millis())
    };
    let office = net(OFFICE);
    assert_eq!([fail(office, at(0)), fail(office, at(0)), fail(office, at(0))], [Ok(100), Ok(200), Ok(300)]);
    assert_eq!(fail(office, at(0)), Err(TurnedAway::LockedOut));
    assert_eq!(fail(office, at(14_999)), Err(TurnedAway::LockedOut));
    assert_eq!(fail(net(8), at(1000)), Ok(100), "another address is not concerned");
    assert_eq!(fail(office, at(15_000)), Ok(100), "what is paid off is forgotten");
    // One that fails now and then is never locked out.
    for n in 0..100 {
        assert_eq!(fail(net(9), at(6000 * n)), Ok(100), "{n}");
    }
    // On a shared address guesses are slowed down, and the others are not locked out.
    let loopback = Source::of(Some(([127, 0, 0, 1], 1).into()));
    let delays: Vec<_> = (0..200).map(|_| fail(loopback, at(1_000_000))).collect();
    assert_eq!((delays[0], delays[199]), (Ok(100), Ok(1000)));
    assert_eq!(fail(Source::Local, at(0)), Ok(0));
}

#[test]
fn a_lock_out_grows_with_silence_and_has_an_end() {
    let mut policy = policy(Startups::default());
    let visit = |policy: &mut Policy, anonymous, now| {
        let entered = policy.enter(net(1), anonymous, now)?;
        policy.leave(entered.ticket, now);
        Ok::<_, TurnedAway>(())
    };
    // Visitors of a page need no credential.
    for _ in 0..100 {
        assert_eq!(visit(&mut policy, true, at(0)), Ok(()));
    }
    for n in 0..15 {
        assert_eq!(visit(&mut policy, false, at(0)), Ok(()), "{n}");
    }
    assert_eq!(visit(&mut policy, false, at(0)), Err(TurnedAway::LockedOut));
    // What came before counts, up to the longest lock-out.
    for _ in 0..1000 {
        policy.charge(net(1), FAILED, at(0));
    }
    assert_eq!(visit(&mut policy, false, at(599_999)), Err(TurnedAway::LockedOut));
    assert_eq!(visit(&mut policy, false, at(600_000)), Ok(()));
    // Without a lock-out there is none.
    let mut policy = Policy::new(Limits::default().lockout(Duration::ZERO));
    for _ in 0..1000 {
        assert_eq!(visit(&mut policy, false, at(0)), Ok(()));
    }
}

#[test]
fn a_connection_has_few_attempts() {
    let mut policy = policy(Startups::default());
    let ticket = policy.enter(Source::Local, false, at(0)).expect("a seat").ticket;
    policy.admit(ticket).expect("room");
    let last: Vec<bool> = (0..ATTEMPTS).map(|_| policy.fail(ticket, at(0)).is_last).collect();
    assert_eq!(last, [false, false, false, false, false, true]);
}

/// A flood from ever new networks must not fill the memory, nor free those that owe the most.
#[test]
fn the_table_of_sources_is_bounded() {
    let mut policy = policy(Startups::default());
    let source = |n: u32| Source::of(Some((Ipv6Addr::from_bits(u128::from(n) << 64 | 1 << 125), 1).into()));
    for _ in 0..10 {
        policy.charge(source(0), FAILED, at(0));
    }
    for n in 1..200_000 {
        policy.charge(source(n), SILENT, at(0));
        assert!(policy.debts.len() <= SOURCES);
    }
    assert!(policy.is_locked_out(source(0), at(1)));
}

#[derive(Debug, Clone)]
enum Step {
    Enter(u8),
    Admit(usize),
    Fail(usize),
    Leave(usize),
    Evict,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u8).prop_map(Step::Enter),
        1 => any::<usize>().prop_map(Step::Admit),
        1 => any::<usize>().prop_map(Step::Fail),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => Just(Step::Evict),
        2 => (0..2000u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Whatever happens, the limits hold, the books balance, and a newcomer of an address that owes
    /// nothing and has a seat to spare is seated.
    #[test]
    fn the_limits_hold(steps in prop::collection::vec(step(), 1..300)) {
        let limits = Limits::default().startups("4:50:12".parse().expect("limits")).per_source(4);
        let mut policy = Policy::new(limits.connections(5));
        let (mut now, mut all) = (0, Vec::new());
        let pick = |all: &[Ticket], n: usize| all.get(n % all.len().max(1)).copied().unwrap_or_default();
        for step in steps {
            match step {
                Step::Enter(n) => {
                    let source = if n == 0 { Source::Local } else { net(n) };
                    let owes = policy.is_locked_out(source, at(now));
                    let spare = policy.crowds.get(&source).is_none_or(|crowd| *crowd < 4);
                    match policy.enter(source, false, at(now)) {
                        Ok(entered) => all.push(entered.ticket),
                        Err(_) => prop_assert!(owes || (!spare && n != 0)),
                    }
                }
                Step::Admit(n) => drop(policy.admit(pick(&all, n))),
                Step::Fail(n) => drop(policy.fail(pick(&all, n), at(now))),
                Step::Leave(n) => policy.leave(pick(&all, n), at(now)),
                Step::Evict => drop(policy.evict(at(now))),
                Step::Pass(millis) => now += millis,
            }
            prop_assert!(policy.pending.len() <= 12 && policy.admitted.len() <= 5);
            prop_assert_eq!(policy.crowds.values().sum::<usize>(), policy.pending.len());
            let crowded = policy.crowds.iter().any(|(source, crowd)| !source.is_shared() && *crowd > 4);
            prop_assert!(!crowded && policy.wait(at(now)).is_none_or(|wait| wait <= TURN));
        }
    }
}
