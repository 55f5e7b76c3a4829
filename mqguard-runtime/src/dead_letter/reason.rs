use std::fmt;

/// Why a message became a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It failed once more than the retry policy allows, or the next retry would be later than `within`.
    Exhausted,
    /// It failed with an error that is not worth a retry.
    Fatal,
    /// The process died while it was handled, more often than allowed.
    CrashLoop,
    /// The body is not what the consumer takes.
    Undecodable,
    /// It has no message id, or no business key, by which a duplicate could be told.
    MissingId,
    /// It failed and its headers leave no room in a frame for those of a retry.
    OversizedHeaders,
    /// The broker itself dead-lettered it, for this reason of its own: `delivery_limit`, `expired`, `maxlen` or `rejected`.
    Broker(String),
    /// A reason that this version does not know.
    Other(String),
}

const NAMES: [(&str, Reason); 6] = [
    ("exhausted", Reason::Exhausted),
    ("fatal", Reason::Fatal),
    ("crash-loop", Reason::CrashLoop),
    ("undecodable", Reason::Undecodable),
    ("missing-id", Reason::MissingId),
    ("oversized-headers", Reason::OversizedHeaders),
];

impl Reason {
    /// Of a message that nobody says to have died.
    pub(crate) fn unknown() -> Self {
        Self::Other("unknown".to_owned())
    }

    /// The reason with this name; any text gives one.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let known = NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, reason)| reason);
        known.unwrap_or_else(|| match name.strip_prefix("broker:") {
            Some(reason) => Self::Broker(reason.to_owned()),
            None => Self::Other(name.to_owned()),
        })
    }
}

impl fmt::Display for Reason {
    /// The name, as the header `mqguard-reason` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(reason) => write!(f, "broker:{reason}"),
            Self::Other(name) => f.write_str(name),
            known => f.write_str(NAMES.iter().find(|(_, reason)| reason == known).map_or("", |(name, _)| name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_from_its_name() {
        let others = [Reason::Broker("delivery_limit".into()), Reason::Other("solar flare".into())];
        for reason in NAMES.into_iter().map(|(_, reason)| reason).chain(others) {
            assert_eq!(Reason::from_name(&reason.to_string()), reason);
        }
    }
}
