//! What RabbitMQ and the client library say, in the contract's terms.

use lapin::ErrorKind;

use crate::broker::contract::{BrokerError, Mismatch};
use crate::tls;

/// The reply codes of AMQP that are told apart here.
pub(super) mod code {
    pub(in super::super) const CONTENT_TOO_LARGE: u16 = 311;
    pub(in super::super) const INVALID_PATH: u16 = 402;
    pub(in super::super) const ACCESS_REFUSED: u16 = 403;
    pub(in super::super) const NOT_FOUND: u16 = 404;
    pub(in super::super) const RESOURCE_LOCKED: u16 = 405;
    pub(in super::super) const PRECONDITION_FAILED: u16 = 406;
    pub(in super::super) const COMMAND_INVALID: u16 = 503;
    pub(in super::super) const NOT_ALLOWED: u16 = 530;
    pub(in super::super) const NOT_IMPLEMENTED: u16 = 540;
}

/// The reply code and text when the broker itself said no.
pub(super) fn reply(error: &lapin::Error) -> Option<(u16, &str)> {
    match error.kind() {
        ErrorKind::ProtocolError(error) => Some((error.get_id(), error.get_message().as_str())),
        _ => None,
    }
}

/// What happened, in one line.
pub(super) fn reason(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(error) => format!("{} {}", error.get_id(), error.get_message()),
        ErrorKind::IOError(error) | ErrorKind::RuntimeShutdownError(error) => error.to_string(),
        ErrorKind::MissingHeartbeatError => "the server sent no heartbeat for too long".into(),
        ErrorKind::InvalidConnectionState(_) | ErrorKind::InvalidChannel(_) | ErrorKind::InvalidChannelState(..) => {
            "the connection or channel is closed".into()
        }
        ErrorKind::ChannelsLimitReached => "the connection has no free channel left (`channel_max`)".into(),
        _ => error.to_string(),
    }
}

/// Why no connection came about.
pub(super) fn connecting(error: &lapin::Error) -> BrokerError {
    if let Some(refusal) = tls::refusal(error) {
        return BrokerError::Refused(refusal);
    }
    match reply(error) {
        // A virtual host that is down, or has its share of connections, lets us in later.
        Some((_, text)) if text.contains("is down") || text.contains("limit") => BrokerError::Unavailable(reason(error)),
        Some((code::ACCESS_REFUSED | code::NOT_ALLOWED | code::INVALID_PATH, _)) => BrokerError::Refused(reason(error)),
        _ => BrokerError::Unavailable(match error.kind() {
            ErrorKind::ParsingError(_) | ErrorKind::InvalidProtocolVersion(_) => {
                "what answers is no AMQP 0-9-1: is it another port that is meant, or one with TLS (`amqps://`)?".into()
            }
            ErrorKind::IOError(error)
                if matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::UnexpectedEof) =>
            {
                format!("{error}: the server ended the connection at once, as one does whose port is for TLS (`amqps://`)")
            }
            _ => reason(error),
        }),
    }
}

/// Why an operation on a queue or exchange did not succeed. `rights` are those that it takes: most versions of RabbitMQ do not tell.
pub(super) fn operation(error: &lapin::Error, what: &'static str, name: &str, rights: &str) -> BrokerError {
    let Some((code, text)) = reply(error) else {
        return BrokerError::Unavailable(reason(error));
    };
    match code {
        code::NOT_FOUND => missing(text).unwrap_or_else(|| BrokerError::Missing { what, name: name.to_owned() }),
        code::ACCESS_REFUSED => BrokerError::Refused(format!("{}; the user needs the permission to {rights}", reason(error))),
        code::PRECONDITION_FAILED => match mismatch(text, what, name) {
            Some(mismatch) => BrokerError::Mismatch(mismatch),
            None => BrokerError::Unsupported(reason(error)),
        },
        code::RESOURCE_LOCKED | code::NOT_ALLOWED | code::NOT_IMPLEMENTED | code::COMMAND_INVALID => {
            BrokerError::Unsupported(reason(error))
        }
        _ => BrokerError::Unavailable(reason(error)),
    }
}

/// What is missing, from a text like `NOT_FOUND - no queue 'q' in vhost '/'`: a binding may lack either side.
fn missing(text: &str) -> Option<BrokerError> {
    let (_, text) = text.split_once("no ")?;
    let (what, text) = text.split_once(" '")?;
    let what = match what {
        "queue" => "queue",
        "exchange" => "exchange",
        _ => return None,
    };
    let (name, _) = text.rsplit_once("' in vhost")?;
    Some(BrokerError::Missing { what, name: name.to_owned() })
}

/// The difference, from a text like
/// `PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '2000' but current is '1000'`.
/// RabbitMQ cuts the text at 255 bytes: with long names the values are not in it.
fn mismatch(text: &str, what: &'static str, name: &str) -> Option<Mismatch> {
    let (_, text) = text.split_once("inequivalent arg '")?;
    let (argument, text) = text.split_once('\'')?;
    let values = text.rsplit_once(": received ").and_then(|(_, values)| values.split_once(" but current is "));
    let (declared, actual) = values.map_or(("not told by the broker", "another value"), |(declared, actual)| (declared, actual));
    Some(Mismatch {
        what,
        name: name.to_owned(),
        argument: argument.to_owned(),
        declared: value(declared),
        actual: value(actual),
    })
}

/// `1000` from `'1000'`, `the value '1000' of type 'signedint'` and the like; other text, such as `none`, as it is.
fn value(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\'').and_then(|(_, rest)| rest.split_once('\'')) {
        Some((value, _)) => value.to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[track_caller]
    fn differs(text: &str, argument: &str, declared: &str, actual: &str) {
        let found = mismatch(text, "queue", "q").unwrap();
        assert_eq!((found.argument.as_str(), found.declared.as_str(), found.actual.as_str()), (argument, declared, actual));
    }

    #[test]
    fn a_mismatch_names_argument_and_both_values() {
        differs(
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '2000' but current is '1000'",
            "x-message-ttl",
            "2000",
            "1000",
        );
        differs(
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is the \
             value '1000' of type 'signedint'",
            "x-message-ttl",
            "none",
            "1000",
        );
        differs(
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'",
            "durable",
            "true",
            "false",
        );
    }

    #[test]
    fn a_text_that_was_cut_still_names_the_argument() {
        differs(
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq...",
            "x-message-ttl",
            "not told by the broker",
            "another value",
        );
    }

    #[test]
    fn what_is_missing_is_told_by_the_broker() {
        let queue = missing("NOT_FOUND - no queue 'it's' in vhost '/'");
        assert_eq!(queue, Some(BrokerError::Missing { what: "queue", name: "it's".into() }));
        let exchange = missing("NOT_FOUND - no exchange 'e' in vhost '/'");
        assert_eq!(exchange, Some(BrokerError::Missing { what: "exchange", name: "e".into() }));
    }
}
