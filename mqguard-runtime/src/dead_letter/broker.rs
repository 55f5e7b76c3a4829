use crate::broker::{HeaderValue, Headers};

/// What the broker wrote when it dead-lettered a message by itself. Each part is there only if its header has the known form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BrokerDeath<'a> {
    pub(crate) reason: Option<&'a str>,
    /// The queue that it died in.
    pub(crate) queue: Option<&'a str>,
    /// Where it was published before its first death.
    pub(crate) exchange: Option<&'a str>,
    pub(crate) routing_key: Option<&'a str>,
}

impl<'a> BrokerDeath<'a> {
    /// `x-death` has the latest death first. A message that waited for a retry has died before, in its hold queue: so what
    /// `x-first-death-reason` says need not be why it is a letter.
    pub(crate) fn read(headers: &'a Headers) -> Self {
        let deaths = headers.get("x-death").and_then(HeaderValue::as_array).unwrap_or_default();
        let latest = deaths.first().and_then(HeaderValue::as_table);
        let earliest = deaths.last().and_then(HeaderValue::as_table);
        let keys = earliest.and_then(|death| death.get("routing-keys")?.as_array());
        Self {
            reason: latest.and_then(|death| death.text("reason")).or_else(|| headers.text("x-first-death-reason")),
            queue: latest.and_then(|death| death.text("queue")).or_else(|| headers.text("x-first-death-queue")),
            exchange: earliest.and_then(|death| death.text("exchange")).or_else(|| headers.text("x-first-death-exchange")),
            routing_key: keys.and_then(|keys| keys.first()?.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(reason: &str, queue: &str, exchange: &str, key: &str) -> HeaderValue {
        let mut death = Headers::new();
        death.insert("reason", reason);
        death.insert("queue", queue);
        death.insert("exchange", exchange);
        death.insert("routing-keys", vec![HeaderValue::from(key), "cc".into()]);
        death.into()
    }

    #[test]
    fn the_latest_death_counts_and_the_earliest_tells_where_it_came_from() {
        let mut headers = Headers::new();
        headers.insert("x-death", vec![death("delivery_limit", "q", "", "q"), death("expired", "q.retry.5s", "e", "k")]);
        headers.insert("x-first-death-reason", "expired");
        let expected =
            BrokerDeath { reason: Some("delivery_limit"), queue: Some("q"), exchange: Some("e"), routing_key: Some("k") };
        assert_eq!(BrokerDeath::read(&headers), expected);
    }

    #[test]
    fn a_history_of_another_form_tells_nothing() {
        let mut headers = Headers::new();
        for value in [HeaderValue::from("1"), HeaderValue::Array(vec!["count".into()]), HeaderValue::Array(Vec::new())] {
            headers.insert("x-death", value);
            assert_eq!(BrokerDeath::read(&headers), BrokerDeath::default());
        }
    }
}
