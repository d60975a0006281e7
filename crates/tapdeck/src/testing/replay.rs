//! A scenario from its cassette: the cassette must be the one that the scenario was written for,
//! whole and derived by
//! this emulator, before anything in it is believed.

use tapdeck_core::Time;
use tapdeck_core::check::{Claim, Point};
use tapdeck_host::Clock;
use tapdeck_tape::cassette::{
    Cassette, Files, Manifest, Refusal, ReplayClock, ReplayMode, Schedule, Verdict, verified,
};
use tapdeck_tape::scenario::{Action, Scenario, bind, step_mark, timeline};

use super::picture;
use super::scenario::{Change, Fault, Loaded, Ran, Remedy};

pub(super) fn run(loaded: &Loaded) -> Ran {
    let path = loaded.cassette();
    if !path.exists() {
        let fault = Fault::new("the cassette is there", format!("there is no cassette {}", path.display()));
        return Ran { faults: vec![fault.with(Remedy::Record)], ..Ran::default() };
    }
    of_files(loaded, Files::read(&path).as_ref())
}

/// The same from files in memory.
pub(super) fn of_files(loaded: &Loaded, files: Result<&Files, &Refusal>) -> Ran {
    let mut ran = Ran::default();
    let (checks, whole) = verified(files);
    ran.checks += checks.iter().filter(|c| !matches!(c.verdict, Verdict::Skipped(_))).count();
    for check in &checks {
        if let Verdict::Failed(why) = &check.verdict {
            let claim = format!("cassette: {}", check.what);
            let fault = Fault::new(claim, why.join("; "));
            let other_emulator = check.is_other_emulator();
            ran.faults.push(if other_emulator { fault.with(Remedy::DeriveFrames) } else { fault });
        }
    }
    let Some(cassette) = whole else {
        if ran.faults.is_empty() {
            ran.faults.push(Fault::new("cassette: it can be read", "it is not whole"));
        }
        return ran;
    };
    bound(loaded, &cassette.manifest, &mut ran);
    if !ran.faults.is_empty() {
        // Facts about another recording would only hide which one it is.
        return ran;
    }
    if loaded.scenario.replay != ReplayMode::Collapsed {
        pace(&cassette, loaded.scenario.replay, &mut ran);
    }
    let timeline = timeline(&cassette);
    ran.claims.extend(step_claims(&loaded.scenario));
    let steps = loaded.scenario.steps.len();
    if steps > 0 && timeline.mark(&step_mark(steps)).is_none() {
        let claim = "cassette: it was made by this scenario";
        ran.faults.push(Fault::new(claim, "it was not recorded from these steps").with(Remedy::Record));
        ran.claims.clear();
    }
    ran.timeline = Some(timeline);
    ran
}

/// What the steps waited for must be on the screen where they had waited for it.
fn step_claims(scenario: &Scenario) -> Vec<(Option<u64>, Claim)> {
    let steps = scenario.steps.iter().enumerate();
    let expected = steps.filter_map(|(i, step)| match &step.action {
        Action::Expect(condition) => {
            let at = Point::mark(&step_mark(i + 1));
            Some((Some(step.line), Claim::At(at, condition.clone())))
        }
        _ => None,
    });
    expected.collect()
}

/// The cassette must be the one that the scenario names.
fn bound(loaded: &Loaded, manifest: &Manifest, ran: &mut Ran) {
    let scenario = &loaded.scenario;
    let wanted = &scenario.cassette;
    let mut check = |claim: &str, fault: Option<Fault>| {
        ran.checks += 1;
        ran.faults.extend(fault.map(|fault| Fault { claim: claim.to_owned(), ..fault }));
    };
    let wrong = |message: String| Fault::new("", message);
    let is = &manifest.content_digest.sha256;
    let other_id = match &wanted.id {
        Some(id) if *id == manifest.id => None,
        Some(id) => Some(format!("the scenario was written for {id}, the cassette is {}", manifest.id)),
        None => Some(format!("the scenario names no id; the cassette is {}", manifest.id)),
    };
    let other_output = match &wanted.sha256 {
        Some(digest) if digest == is => None,
        Some(digest) => Some(format!("the scenario was written for output {digest}, the cassette has {is}")),
        None => Some(format!("the scenario names no digest; the cassette's output has {is}")),
    };
    let rebind = other_id.is_some() || other_output.is_some();
    let other = |message: String| wrong(message).with(Remedy::Rebind);
    check("the cassette has the id that the scenario names", other_id.map(other));
    check("the cassette has the digest that the scenario names", other_output.map(other));
    let (cols, rows) = (manifest.terminal.initial_cols, manifest.terminal.initial_rows);
    let size = scenario.size;
    check("the cassette has the size that the scenario names", {
        let differs = (size.cols, size.rows) != (cols, rows);
        differs.then(|| {
            wrong(format!("the scenario wants {}x{}, the cassette has {cols}x{rows}", size.cols, size.rows))
        })
    });
    if let Some(env) = &scenario.env {
        let mut names: Vec<&str> = env.allow.iter().map(String::as_str).collect();
        names.extend(env.set.iter().map(|(name, _)| name.as_str()));
        let strange =
            manifest.command.env_allowlist.iter().find(|n| !names.contains(&n.as_str()) && *n != "HOME");
        check(
            "the cassette was recorded under the scenario's environment",
            strange.map(|name| {
                wrong(format!("the program was given {name}, which the scenario does not allow"))
            }),
        );
    }
    if rebind {
        let text = bind(&loaded.text, &manifest.id, is);
        let difference = picture::difference(&loaded.text, &text);
        ran.changes.push(Change { path: loaded.path.clone(), text, difference });
    }
}

/// Replays in time and makes sure that nothing comes early or out of order.
fn pace(cassette: &Cassette, mode: ReplayMode, ran: &mut Ran) {
    struct Wall(Clock);
    impl ReplayClock for Wall {
        fn now(&mut self) -> Time {
            self.0.now().mono
        }
        fn wait_until(&mut self, at: Time) {
            loop {
                let left = at.since(self.now());
                if left.is_zero() {
                    return;
                }
                // Spurious wake-ups only go round once more.
                std::thread::park_timeout(left);
            }
        }
    }
    let factor = match mode {
        ReplayMode::Realtime => 1.0,
        ReplayMode::Scaled(factor) => factor,
        ReplayMode::Collapsed => 0.0,
    };
    let clock = Clock::start();
    let (mut last, mut fault) = (0, None);
    let mut schedule = Schedule::new(&cassette.events, mode);
    // The closure never breaks off.
    let _ = schedule.play(&mut Wall(clock), |event| {
        let now_ms = clock.now().mono.as_millis();
        let due_ms = (event.t_ms as f64 * factor) as u64;
        if event.seq <= last {
            fault = Some(format!("event {} came after event {last}", event.seq));
        } else if now_ms < due_ms {
            fault = Some(format!("event {} came {} ms early", event.seq, due_ms - now_ms));
        }
        last = event.seq;
        std::ops::ControlFlow::<()>::Continue(())
    });
    ran.checks += 1;
    ran.faults
        .extend(fault.map(|message| Fault::new(format!("replay: {mode} keeps order and time"), message)));
}
