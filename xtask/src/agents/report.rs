//! What the runs with real agents print, and the same as JSON lines.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::judge::percentile;
use super::prompts::Delivery;
use super::states::Outcome;
use super::{Agent, Options};

/// Adds a line to the file of `--json`.
fn line(options: &Options, value: &Value) -> Result<()> {
    if let Some(path) = &options.json {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
        writeln!(file, "{value}")?;
    }
    Ok(())
}

/// Prints a situation that was just played.
pub(super) fn situation(outcome: &Outcome, options: &Options) -> Result<()> {
    line(options, &outcome.to_json())?;
    let verdict = if outcome.failed() { "WRONG" } else { "ok" };
    let ms = |value: Option<f64>| value.map_or(String::new(), |ms| format!("{ms:.0}"));
    println!(
        "| {} | {} {} | {} | {verdict} | {} | {} | {} |",
        outcome.agent.name(),
        outcome.around,
        outcome.rows,
        outcome.situation,
        ms(outcome.idle_ms),
        ms(outcome.blocked_ms),
        outcome.lost_keys,
    );
    for wrong in &outcome.wrong {
        let what = if wrong.false_idle { "FALSE IDLE" } else { &wrong.state };
        println!("    {}: {what} for {:.0} ms ({})", wrong.phase, wrong.ms, wrong.rule);
    }
    for note in &outcome.notes {
        println!("    {note}");
    }
    if outcome.failed() {
        let seen: Vec<String> =
            outcome.seen.iter().map(|(at, state, rule)| format!("{at:.0} {state} ({rule})")).collect();
        println!("    expected {}\n    seen {}", outcome.expected, seen.join(", "));
    }
    Ok(())
}

/// Prints the sums. Returns whether everything was right.
pub(super) fn states(outcomes: &[Outcome], options: &Options) -> Result<bool> {
    println!(
        "\n| agent | situations | right | wrong states | false idles | idle p50/p90/p99/max | blocked p50/p99 | lost keys |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for agent in &options.agents {
        let of: Vec<&Outcome> = outcomes.iter().filter(|o| o.agent == *agent).collect();
        let wrong =
            |false_idle| of.iter().flat_map(|o| &o.wrong).filter(|w| w.false_idle == false_idle).count();
        let idle: Vec<f64> = of.iter().filter_map(|o| o.idle_ms).collect();
        let blocked: Vec<f64> = of.iter().filter_map(|o| o.blocked_ms).collect();
        let right = of.iter().filter(|o| !o.failed()).count();
        let lost: u32 = of.iter().map(|o| o.lost_keys).sum();
        println!(
            "| {} | {} | {right} | {} | {} | {:.0}/{:.0}/{:.0}/{:.0} | {:.0}/{:.0} | {lost} |",
            agent.name(),
            of.len(),
            wrong(false),
            wrong(true),
            percentile(&idle, 0.5),
            percentile(&idle, 0.9),
            percentile(&idle, 0.99),
            percentile(&idle, 1.0),
            percentile(&blocked, 0.5),
            percentile(&blocked, 0.99),
        );
        line(
            options,
            &json!({
                "sum": agent.name(), "situations": of.len(), "right": right, "wrong": wrong(false),
                "false_idles": wrong(true), "lost_keys": lost,
                "idle_p50": percentile(&idle, 0.5), "idle_p90": percentile(&idle, 0.9), "idle_p99": percentile(&idle, 0.99),
            }),
        )?;
    }
    Ok(outcomes.iter().all(|o| !o.failed()))
}

/// Prints a delivery that went wrong.
pub(super) fn delivery(delivery: &Delivery, options: &Options) -> Result<()> {
    line(options, &delivery.to_json())?;
    if !delivery.true_verdict() || delivery.spoilt {
        let got: Vec<String> = delivery.got.iter().map(|g| format!("{g:.80?}")).collect();
        let spoilt = if delivery.spoilt { ", and spoilt the next prompt" } else { "" };
        println!(
            "    {} {}: {} ({:.100}){spoilt}\n        sent {:.80?}\n        arrived {}",
            delivery.agent.name(),
            delivery.name,
            delivery.outcome,
            delivery.evidence,
            delivery.text,
            got.join(" | ")
        );
    }
    Ok(())
}

/// Prints the sums. Returns whether every verdict was true.
pub(super) fn prompts(deliveries: &[Delivery], agents: &[Agent], options: &Options) -> Result<bool> {
    println!(
        "\n| agent | prompts | submitted | exact | changed | others | false verdicts | spoilt the next | paste p50/p90/p99 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for agent in agents {
        let of: Vec<&Delivery> = deliveries.iter().filter(|d| d.agent == *agent).collect();
        let count = |what: &dyn Fn(&Delivery) -> bool| of.iter().filter(|d| what(d)).count();
        let submitted = count(&|d| d.outcome == "submitted");
        let (exact, wrong) = (count(&|d| d.exact()), count(&|d| !d.true_verdict()));
        let changed = count(&|d| d.outcome == "submitted" && d.true_verdict() && !d.exact());
        let spoilt = count(&|d| d.spoilt);
        let ms: Vec<f64> = of.iter().filter(|d| d.outcome == "submitted").map(|d| d.ms).collect();
        println!(
            "| {} | {} | {submitted} | {exact} | {changed} | {} | {wrong} | {spoilt} | {:.0}/{:.0}/{:.0} |",
            agent.name(),
            of.len(),
            of.len() - submitted,
            percentile(&ms, 0.5),
            percentile(&ms, 0.9),
            percentile(&ms, 0.99),
        );
        line(
            options,
            &json!({
                "sum": agent.name(), "prompts": of.len(), "submitted": submitted, "exact": exact,
                "changed": changed, "false": wrong, "spoilt": spoilt,
            }),
        )?;
    }
    Ok(deliveries.iter().all(|d| d.true_verdict() && !d.spoilt))
}
