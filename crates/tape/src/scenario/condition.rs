//! Conditions of the file to conditions of [`tapdeck_core::check`].

use tapdeck_core::check::{
    Cells, Condition, Count, Fact, Look, Normaliser, Region, Spot, StyleFact, TextTest, colour, pattern,
    underline,
};
use tapdeck_term::{CursorShape, Size};

use super::raw::{self, At};
use super::{Line, ScenarioError, Stored};
use crate::event::MAX_SIDE;

/// What holds for all conditions of a scenario.
#[derive(Debug, Clone, Default)]
pub(super) struct Common {
    normalise: Vec<Normaliser>,
    masks: Vec<Region>,
}

impl Common {
    pub(super) fn new(rules: &[At<raw::Rule>], masks: &[At<raw::Area>]) -> Result<Self, ScenarioError> {
        Ok(Self { normalise: normalisers(rules)?, masks: regions(masks)? })
    }
}

/// What is wrong, as yet without a line.
pub(super) type Said<T> = Result<T, String>;

/// A size such as `80x24`.
pub(super) fn size(text: &str) -> Said<Size> {
    let wrong = || format!("{text:?} is no size: write COLSxROWS, such as 120x40, each from 1 to {MAX_SIDE}");
    let (cols, rows) = text.split_once('x').ok_or_else(wrong)?;
    let side = |s: &str| s.trim().parse().ok().filter(|n| (1..=MAX_SIDE).contains(n)).ok_or_else(wrong);
    Ok(Size::new(side(cols)?, side(rows)?))
}

pub(super) fn count(raw: &raw::Count) -> Said<Count> {
    match raw {
        raw::Count::Exactly(n) => Ok(Count::exactly(*n)),
        raw::Count::Long(l) if l.min.is_none() && l.max.is_none() => {
            Err("a range wants min, max or both".into())
        }
        raw::Count::Long(l) => Ok(Count { min: l.min, max: l.max }),
    }
}

pub(super) fn text(raw: &raw::Text) -> Said<TextTest> {
    match raw {
        raw::Text::Is(text) => Ok(TextTest::Is(text.clone())),
        raw::Text::Long(l) => match (&l.is, &l.contains, &l.matches) {
            (Some(text), None, None) => Ok(TextTest::Is(text.clone())),
            (None, Some(text), None) => Ok(TextTest::Contains(text.clone())),
            (None, None, Some(text)) => Ok(TextTest::Matches(pattern(text)?)),
            _ => Err("a text wants one of is, contains and matches".into()),
        },
    }
}

/// `3`, `3-5` or `3-` as numbers from 0, both included.
fn span(text: &Option<At<String>>) -> Result<(u16, u16), ScenarioError> {
    let Some(at) = text else { return Ok((0, u16::MAX)) };
    let text = at.value.as_str();
    let wrong = || at.error(format!("{text:?} are no rows or columns: write 3, 3-5 or 3-, counted from 1"));
    let number = |s: &str| s.trim().parse::<u16>().ok().and_then(|n| n.checked_sub(1)).ok_or_else(wrong);
    match text.split_once('-') {
        None => number(text).map(|n| (n, n)),
        Some((from, "")) => Ok((number(from)?, u16::MAX)),
        Some((from, to)) => {
            let (from, to) = (number(from)?, number(to)?);
            if from > to { Err(wrong()) } else { Ok((from, to)) }
        }
    }
}

fn region(rows: &Option<At<String>>, cols: &Option<At<String>>) -> Result<Region, ScenarioError> {
    let ((top, bottom), (left, right)) = (span(rows)?, span(cols)?);
    Ok(Region { top, bottom, left, right })
}

fn regions(raw: &[At<raw::Area>]) -> Result<Vec<Region>, ScenarioError> {
    let each = raw.iter().map(|m| match region(&m.value.rows, &m.value.cols)? {
        Region::ALL if m.value.rows.is_none() && m.value.cols.is_none() => {
            Err(m.error("a mask wants rows, cols or both"))
        }
        Region::ALL => Err(m.error("a mask over the whole screen leaves nothing to check")),
        region => Ok(region),
    });
    each.collect()
}

fn normalisers(raw: &[At<raw::Rule>]) -> Result<Vec<Normaliser>, ScenarioError> {
    let each = raw.iter().map(|rule| {
        let ready = match &rule.value {
            raw::Rule::Name(name) => Normaliser::named(name),
            raw::Rule::Long(own) => Normaliser::new(&own.name, &own.pattern, &own.with),
        };
        ready.map_err(|e| rule.error(e))
    });
    each.collect()
}

/// A condition; `line` is where its assertion or step begins.
pub(super) fn read(
    raw: &raw::Condition,
    line: &Line,
    common: &Common,
    stored: Stored<'_>,
) -> Result<Condition, ScenarioError> {
    let condition = read_any(raw, line, common, stored)?;
    if condition.facts.is_empty() {
        let what = "a condition that asks for nothing holds always: say what must be there".into();
        return Err(ScenarioError { line: line.clone(), what });
    }
    Ok(condition)
}

/// The part of the screen that must stay the same, and what must hold there, if anything.
pub(super) fn stable(
    raw: Option<&raw::Condition>,
    line: &Line,
    common: &Common,
    stored: Stored<'_>,
) -> Result<Condition, ScenarioError> {
    read_any(raw.unwrap_or(&raw::Condition::default()), line, common, stored)
}

fn read_any(
    raw: &raw::Condition,
    line: &Line,
    common: &Common,
    stored: Stored<'_>,
) -> Result<Condition, ScenarioError> {
    let at = |what: String| ScenarioError { line: line.clone(), what };
    let mut masks = common.masks.clone();
    masks.extend(regions(&raw.masks)?);
    let normalise = match &raw.normalise {
        Some(own) => normalisers(own)?,
        None => common.normalise.clone(),
    };
    let region = region(&raw.rows, &raw.cols)?;
    let mut facts = facts(raw, stored).map_err(at)?;
    for style in &raw.style.0 {
        facts.push(Fact::Style(read_style(style, line)?));
    }
    Ok(Condition { look: Look { region, masks, normalise }, facts })
}

fn facts(raw: &raw::Condition, stored: Stored<'_>) -> Said<Vec<Fact>> {
    let mut facts = Vec::new();
    facts.extend(raw.contains.0.iter().cloned().map(Fact::Contains));
    facts.extend(raw.lacks.0.iter().cloned().map(Fact::Lacks));
    for text in &raw.matches.0 {
        facts.push(Fact::Matches(pattern(text)?));
    }
    if let Some(text) = &raw.equals {
        facts.push(Fact::Equals { text: text.clone(), file: None });
    }
    for (file, styled) in [(&raw.file, false), (&raw.styled, true)] {
        let Some(file) = file.clone() else { continue };
        if file.starts_with('/') || file.split('/').any(|part| part == "..") {
            return Err(format!("the file {file:?} must lie beside the scenario"));
        }
        facts.push(match stored(&file) {
            Ok(text) if styled => Fact::Styled { text, file },
            Ok(text) => Fact::Equals { text, file: Some(file) },
            Err(why) => Fact::Unread { file, why: why.to_string(), styled },
        });
    }
    match raw.blank {
        Some(true) => facts.push(Fact::Blank),
        Some(false) => return Err("blank can only be true: say what is there instead".into()),
        None => {}
    }
    if let Some(cursor) = &raw.cursor {
        facts.push(read_cursor(cursor)?);
    }
    if let Some(text) = &raw.size {
        facts.push(Fact::Size(size(text)?));
    }
    facts.extend(raw.alternate.map(Fact::Alternate));
    for (mode, on) in &raw.modes {
        facts.push(Fact::Mode(mode.parse()?, *on));
    }
    if let Some(title) = &raw.title {
        facts.push(Fact::Title(text(title)?));
    }
    if let Some(scrolled) = &raw.scrolled {
        let Count { min, max } = count(scrolled)?;
        facts.push(Fact::Scrolled { min, max });
    }
    if let Some(above) = &raw.above {
        facts.push(Fact::Above(text(above)?));
    }
    Ok(facts)
}

/// What a text means, where there is one; what is wrong with it has its line.
pub(super) fn read_at<T, E: Into<String>>(
    raw: &Option<At<String>>,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, ScenarioError> {
    raw.as_ref().map(|at| read(&at.value).map_err(|e| at.error(e))).transpose()
}

pub(super) fn from_one(n: Option<u16>, what: &str) -> Said<Option<u16>> {
    n.map(|n| n.checked_sub(1).ok_or_else(|| format!("a {what} is counted from 1"))).transpose()
}

fn read_cursor(raw: &raw::Cursor) -> Said<Fact> {
    let wrong = |name| format!("{name:?} is no cursor: write default, block, underline or bar");
    let shape = raw.shape.as_deref();
    let shape = shape.map(|name| CursorShape::from_name(name).ok_or_else(|| wrong(name))).transpose()?;
    let (row, col) = (from_one(raw.row, "row")?, from_one(raw.col, "column")?);
    Ok(Fact::Cursor { row, col, visible: raw.visible, shape })
}

fn read_style(raw: &raw::Style, line: &Line) -> Result<StyleFact, ScenarioError> {
    let at = |what: String| ScenarioError { line: line.clone(), what };
    let (row, col) = (from_one(raw.row, "row").map_err(at)?, from_one(raw.col, "column").map_err(at)?);
    let cells = match (&raw.text, row, col) {
        (Some(text), None, None) => Cells::Text(text.clone()),
        (None, Some(row), Some(col)) => Cells::At(Spot { row, col, width: raw.width.unwrap_or(1) }),
        _ => return Err(at("a style wants a text, or a row and a col".into())),
    };
    let attrs = [
        ("bold", raw.bold),
        ("faint", raw.faint),
        ("italic", raw.italic),
        ("blink", raw.blink),
        ("inverse", raw.inverse),
        ("conceal", raw.conceal),
        ("strike", raw.strike),
        ("overline", raw.overline),
    ];
    let attrs = attrs.into_iter().filter_map(|(name, on)| Some((name.parse().ok()?, on?))).collect();
    Ok(StyleFact {
        cells,
        fg: read_at(&raw.fg, colour)?,
        bg: read_at(&raw.bg, colour)?,
        attrs,
        underline: read_at(&raw.underline, underline)?,
        link: raw.link.clone(),
    })
}
