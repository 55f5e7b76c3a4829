//! Durations as text: `"500ms"`, `"5s"`, `"1h30m"`.

use std::time::Duration;

/// The units with their length in milliseconds, longest first: the order in which they may stand in a text.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// How a unit is also written, for those who did so to be told how to write it.
const OTHER_NAMES: &[(&[&str], u64)] = &[
    (&["weeks", "week", "wk", "w"], 604_800_000),
    (&["days", "day"], 86_400_000),
    (&["hours", "hour", "hrs", "hr"], 3_600_000),
    (&["minutes", "minute", "mins", "min"], 60_000),
    (&["seconds", "second", "secs", "sec"], 1_000),
    (&["milliseconds", "millisecond", "millis", "msecs", "msec"], 1),
];

/// Reads a duration: whole numbers, each with a unit, the longest first and none twice.
///
/// Otherwise the rest of the sentence that starts with the text.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("is not a duration: write a number with its unit, as in \"5s\"".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("has no unit: write \"{text}s\" for seconds, \"{text}ms\" for milliseconds"));
    }
    strictly(text).ok_or_else(|| match loosely(text) {
        Some(Ok(meant)) => format!("is not a duration: write \"{}\"", print(meant)),
        Some(Err(TooLong)) => "is too long".to_owned(),
        None => format!("is not a duration: write numbers with a unit ({}), as in \"500ms\", \"5s\" or \"1h30m\"", units()),
    })
}

/// The duration that a text which is none was meant to be, as it is written in an attribute.
pub(crate) fn suggestion(text: &str) -> Option<String> {
    loosely(text)?.ok().map(print)
}

fn units() -> String {
    UNITS.iter().rev().map(|(unit, _)| format!("`{unit}`")).collect::<Vec<_>>().join(", ")
}

fn strictly(text: &str) -> Option<Duration> {
    let mut total = 0_u64;
    let mut rest = text;
    let mut allowed = UNITS.as_slice();
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, behind) = behind.split_at(behind.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(behind.len()));
        let index = allowed.iter().position(|&(name, _)| name == unit)?;
        total = number.parse::<u64>().ok()?.checked_mul(allowed[index].1)?.checked_add(total)?;
        allowed = &allowed[index + 1..];
        rest = behind;
    }
    Some(Duration::from_millis(total))
}

/// A duration that no number can hold.
struct TooLong;

/// What a text that is not a duration was most likely meant to be.
fn loosely(text: &str) -> Option<Result<Duration, TooLong>> {
    let text = text.trim().to_lowercase();
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(&text).trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_'))?);
        let behind = behind.trim_start();
        let (unit, behind) = behind.split_at(behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len()));
        total += number.replace('_', "").parse::<f64>().ok()? * unit_length(unit)?;
        rest = behind.trim_start_matches([' ', ',']);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and bounded by the condition")]
    Some(if total < 1e15 { Ok(Duration::from_millis(total.round() as u64)) } else { Err(TooLong) })
}

#[expect(clippy::cast_precision_loss, reason = "at most a week")]
fn unit_length(unit: &str) -> Option<f64> {
    let exact = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, length)| length);
    let other = || OTHER_NAMES.iter().find(|(names, _)| names.contains(&unit)).map(|&(_, length)| length);
    exact.or_else(other).map(|length| length as f64)
}

/// A duration as it is written in an attribute.
pub(crate) fn print(duration: Duration) -> String {
    let mut rest = duration.as_millis();
    let mut text = String::new();
    for (unit, length) in UNITS {
        let number = rest / u128::from(length);
        rest %= u128::from(length);
        if number > 0 {
            text += &format!("{number}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A long duration roughly, rounded up: its two largest units.
pub(crate) fn print_roughly(duration: Duration) -> String {
    let millis = duration.as_millis();
    let largest = UNITS.iter().position(|&(_, length)| millis >= u128::from(length));
    let grain = largest.and_then(|index| UNITS.get(index + 1)).map_or(1, |&(_, length)| u128::from(length));
    let rounded = millis.div_ceil(grain).saturating_mul(grain);
    print(Duration::from_millis(u64::try_from(rounded).unwrap_or(u64::MAX)))
}
