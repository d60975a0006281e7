//! A scenario from its cassette: the cassette must be the one that the scenario was written for,
//! whole and derived by
//! this emulator, before anything in it is believed.

use tapdeck_core::Time;
use tapdeck_core::check::{Claim, Point};
use tapdeck_host::Clock;
use tapdeck_tape::cassette::{
    Cassette, Files, Refusal, ReplayClock, ReplayMode, Schedule, Verdict, verified,
};
use tapdeck_tape::scenario::{
    Action, CassetteRef, Line, PinChange, Pins, Scenario, bind, step_mark, timeline,
};

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
    ran.captured = cassette.captured_at();
    if let Ok(files) = files {
        bound(loaded, &cassette, files, &mut ran);
    }
    if !ran.faults.is_empty() {
        // Facts about another recording would only hide which one it is.
        return ran;
    }
    if loaded.scenario.replay != ReplayMode::Collapsed {
        pace(&cassette, loaded.scenario.replay, &mut ran);
    }
    let timeline = timeline(&cassette);
    let left = cassette.outcome.metadata.get("leaked");
    ran.left = left.and_then(|left| serde_json::from_str(&left.to_string()).ok()).unwrap_or_default();
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
fn step_claims(scenario: &Scenario) -> Vec<(Option<Line>, Claim)> {
    let steps = scenario.steps.iter().enumerate();
    let expected = steps.filter_map(|(i, step)| match &step.action {
        Action::Expect(condition) => {
            let at = Point::mark(&step_mark(i + 1));
            Some((Some(step.line.clone()), Claim::At(at, condition.clone())))
        }
        _ => None,
    });
    expected.collect()
}

/// The cassette must be the one that the scenario names.
fn bound(loaded: &Loaded, cassette: &Cassette, files: &Files, ran: &mut Ran) {
    let (scenario, manifest) = (&loaded.scenario, &cassette.manifest);
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
    let another = other_id.is_some() || other_output.is_some();
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
    let made = scenario_ref(loaded, cassette, files);
    let mut rebind = another;
    match &made {
        // Of another cassette everything is different.
        Ok(made) if !another => rebind = pinned(loaded, made, ran),
        Ok(_) => {}
        Err(why) => {
            ran.faults.push(Fault::new("the scenario can be compared with its cassette", why.clone()))
        }
    }
    if let (true, Ok(made)) = (rebind, &made) {
        let text = bind(&loaded.text, made, scenario.variant.as_deref());
        let difference = picture::difference(&loaded.text, &text);
        let binding = Some(Box::new(made.clone()));
        ran.changes.push(Change { path: loaded.path.clone(), text, difference, binding });
    }
}

/// What the scenario would have to say about its cassette.
pub(super) fn scenario_ref(
    loaded: &Loaded,
    cassette: &Cassette,
    files: &Files,
) -> Result<CassetteRef, String> {
    let digest = &cassette.manifest.content_digest;
    let copied = loaded.copied().map_err(|(name, e)| format!("{name}: {e}"))?;
    let exit = &cassette.outcome.exit;
    let pins = Pins::of(&loaded.scenario, &copied, files, exit).map_err(|e| e.to_string())?;
    Ok(CassetteRef {
        path: None,
        id: Some(cassette.manifest.id.clone()),
        sha256: Some(digest.sha256.clone()),
        binding: digest.binding.clone(),
        pins: Some(pins),
    })
}

/// The rest of the cassette, and what it was made from, must be what the scenario was bound to.
/// Says whether that is not so.
fn pinned(loaded: &Loaded, made: &CassetteRef, ran: &mut Ran) -> bool {
    let wanted = &loaded.scenario.cassette;
    let (Some(pins), Some(now)) = (&wanted.pins, &made.pins) else {
        // A scenario from before there were pins holds the cassette to nothing more.
        unlike(wanted, made, ran);
        return true;
    };
    ran.checks += 1;
    let changes = pins.changes(now, &loaded.scenario);
    let claim = "the cassette and what it was recorded from are what the scenario was bound to";
    for PinChange { line, what, can_stay } in &changes {
        let remedy = if *can_stay { Remedy::Rebind } else { Remedy::Record };
        ran.faults.push(Fault {
            line: line.clone().map(Box::new),
            ..Fault::new(claim, what.as_str()).with(remedy)
        });
    }
    if changes.iter().any(|change| !change.can_stay) {
        return false;
    }
    // One of the two is the reason for the other.
    let in_cassette = ["exit", "input", "events"].iter().any(|name| pins.differs(now, name));
    let other = !in_cassette && unlike(wanted, made, ran);
    !changes.is_empty() || other
}

/// The whole binding must be the one that the scenario names.
fn unlike(wanted: &CassetteRef, made: &CassetteRef, ran: &mut Ran) -> bool {
    let Some(binding) = &wanted.binding else { return false };
    ran.checks += 1;
    if made.binding.as_ref() == Some(binding) {
        return false;
    }
    let is = made.binding.as_deref().unwrap_or("none");
    let what = format!(
        "something in the cassette beside the output, the input, the events and the exit code was changed: \
         its binding is {is}, the scenario was written for {binding}"
    );
    let claim = "the cassette has the binding that the scenario names";
    ran.faults.push(Fault::new(claim, what).with(Remedy::Rebind));
    true
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
