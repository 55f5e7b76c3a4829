//! Numbers: whole ones, and those with a fraction.

use std::ops::RangeInclusive;

use syn::Lit;

use super::entries::{Entry, compact};
use super::value::{Operand, operand};
use crate::diag::Sink;

/// A whole number. `below` is added to the message when it is too small.
pub(crate) fn whole(entry: &Entry, range: &RangeInclusive<u32>, below: &str, sink: &mut Sink) -> Option<u32> {
    let what = format!("a whole number from {} to {}", range.start(), range.end());
    operand(entry, sink, |operand, sink| {
        match operand.literal() {
            Some(Lit::Int(number)) if number.suffix().is_empty() => match number.base10_parse() {
                Ok(number) if range.contains(&number) => return Some(number),
                Ok(number) if number < *range.start() => out_of_range(operand, &what, below, sink),
                _ => out_of_range(operand, &what, "", sink),
            },
            Some(Lit::Float(_)) => out_of_range(operand, &what, "", sink),
            _ => match meant(operand) {
                Some(number) if number < 0.0 => out_of_range(operand, &what, below, sink),
                Some(number)
                    if number.fract() == 0.0 && (f64::from(*range.start())..=f64::from(*range.end())).contains(&number) =>
                {
                    operand.wrong(&what, &(operand.line)(&number), sink);
                }
                _ => operand.wrong(&what, operand.sample, sink),
            },
        }
        None
    })
}

/// A number with or without a fraction. `hint` is added to the message when it is out of range.
pub(crate) fn number(entry: &Entry, range: &RangeInclusive<f64>, hint: &str, sink: &mut Sink) -> Option<f64> {
    let what = format!("a number from {} to {}", range.start(), range.end());
    operand(entry, sink, |operand, sink| {
        let number = match operand.literal() {
            Some(Lit::Int(number)) if number.suffix().is_empty() => number.base10_parse().ok(),
            Some(Lit::Float(number)) if number.suffix().is_empty() => number.base10_parse().ok(),
            _ => {
                match meant(operand) {
                    Some(number) if range.contains(&number) => operand.wrong(&what, &(operand.line)(&number), sink),
                    Some(_) => out_of_range(operand, &what, hint, sink),
                    None => operand.wrong(&what, operand.sample, sink),
                }
                return None;
            }
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            out_of_range(operand, &what, hint, sink);
        }
        number
    })
}

fn out_of_range(operand: &Operand<'_>, what: &str, hint: &str, sink: &mut Sink) {
    sink.error(operand.at, format!("{} takes {what}, not {}{hint}", operand.name, compact(operand.tokens)));
}

/// The number that is meant by what is none: `"3"`, `3u32`, `-1`, `20%`.
fn meant(operand: &Operand<'_>) -> Option<f64> {
    let text = match operand.literal() {
        Some(Lit::Int(number)) => return number.base10_digits().parse().ok(),
        Some(Lit::Float(number)) => return number.base10_digits().parse().ok(),
        Some(Lit::Str(text)) => text.value(),
        _ => compact(operand.tokens),
    };
    let text = text.trim().replace('_', "");
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}
