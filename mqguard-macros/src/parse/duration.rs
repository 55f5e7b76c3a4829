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
/// A text that is too long for any number is the longest duration. Otherwise the rest of the sentence that starts with the text.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("is not a duration: write a number with its unit, as in \"5s\"".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("has no unit: write \"{text}s\" for seconds, \"{text}ms\" for milliseconds"));
    }
    match strictly(text).map_or_else(|| loosely(text), |duration| Some(Meant::Exactly(duration))) {
        Some(Meant::Exactly(duration)) => Ok(duration),
        Some(Meant::Probably(duration)) => Err(format!("is not a duration: write \"{}\"", print(duration))),
        None => Err(format!("is not a duration: write numbers with a unit ({}), as in \"500ms\", \"5s\" or \"1h30m\"", units())),
    }
}

/// The duration that a text which is none was meant to be, as it is written in an attribute.
pub(crate) fn suggestion(text: &str) -> Option<String> {
    match loosely(text)? {
        Meant::Probably(duration) => Some(print(duration)),
        Meant::Exactly(_) => None,
    }
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

/// What a text means.
enum Meant {
    Exactly(Duration),
    Probably(Duration),
}

/// What a text that is not a duration was most likely meant to be.
fn loosely(text: &str) -> Option<Meant> {
    let text = text.trim().to_lowercase();
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(&text).trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_'))?);
        let behind = behind.trim_start();
        let (unit, behind) = behind.split_at(behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len()));
        total += number.replace('_', "").parse::<f64>().ok()? * unit_length(unit)?;
        rest = behind.trim_start();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and bounded by the condition")]
    Some(if total < 1e15 { Meant::Probably(Duration::from_millis(total.round() as u64)) } else { Meant::Exactly(Duration::MAX) })
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
    // Up to two days people say hours: "24h".
    let units = if rest < 172_800_000 { &UNITS[1..] } else { &UNITS[..] };
    for &(unit, length) in units {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_units() {
        let table = [
            ("0s", 0),
            ("500ms", 500),
            ("5s", 5_000),
            ("05s", 5_000),
            ("90s", 90_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
        ];
        for (text, millis) in table {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_printed_reads_the_same() {
        for millis in [0, 1, 999, 1_000, 61_001, 3_600_000, 86_400_000, 172_800_000, 93_784_005_123] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(&print(duration)), Ok(duration));
        }
        assert_eq!(print(Duration::from_secs(24 * 3600)), "24h");
        assert_eq!(print(Duration::from_secs(48 * 3600)), "2d");
    }

    #[test]
    fn other_spellings_are_refused_with_the_right_one() {
        let table = [
            ("5 sec", "5s"),
            ("5S", "5s"),
            ("-5s", "5s"),
            (" 5s", "5s"),
            ("5s5s", "10s"),
            ("5min", "5m"),
            ("0.5s", "500ms"),
            ("1.5h", "1h30m"),
            ("1m1h", "1h1m"),
            ("2 weeks", "14d"),
            ("1 hour 30 minutes", "1h30m"),
            ("1_000ms", "1s"),
        ];
        for (text, good) in table {
            assert_eq!(parse(text), Err(format!("is not a duration: write \"{good}\"")), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_a_duration() {
        for text in ["", "5", "30000", "s", "five", "5x", "5s x", "\u{665}s", "5\u{2009}\u{b5}s", "1e3s", "5s,10s", "...s", "ms5"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        let message = "has no unit: write \"30000s\" for seconds, \"30000ms\" for milliseconds";
        assert_eq!(parse("30000"), Err(message.to_owned()));
    }

    #[test]
    fn what_no_number_holds_is_the_longest() {
        for text in ["18446744073709551615s", "99999999999999999999s", "184467440737095516d"] {
            assert_eq!(parse(text), Ok(Duration::MAX), "{text}");
        }
    }

    #[test]
    fn roughly_is_rounded_up_to_two_units() {
        for (millis, text) in [(1, "1ms"), (1_001, "1s1ms"), (61_001, "1m2s"), (3_600_001, "1h1m"), (300_000_001, "3d12h")] {
            assert_eq!(print_roughly(Duration::from_millis(millis)), text);
        }
    }
}
