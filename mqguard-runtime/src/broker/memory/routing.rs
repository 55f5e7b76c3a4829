use crate::broker::topology::ExchangeKind;

/// Whether an exchange of this kind routes `key` over a binding with `pattern`.
pub(super) fn routes(kind: ExchangeKind, pattern: &str, key: &str) -> bool {
    match kind {
        ExchangeKind::Fanout => true,
        ExchangeKind::Direct => pattern == key,
        ExchangeKind::Topic => {
            let words = |text: &str| if text.is_empty() { Vec::new() } else { text.split('.').map(str::to_owned).collect() };
            topic_matches(&words(pattern), &words(key))
        }
    }
}

/// `*` stands for one word, `#` for any number of them, also none.
fn topic_matches(pattern: &[String], key: &[String]) -> bool {
    match (pattern.split_first(), key.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((first, rest)), _) if first == "#" => (0..=key.len()).any(|skip| topic_matches(rest, &key[skip..])),
        (Some(_), None) => false,
        (Some((first, rest)), Some((word, words))) => (first == "*" || first == word) && topic_matches(rest, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_patterns_match_as_in_amqp() {
        let cases = [
            ("order.*", "order.paid", true),
            ("order.*", "order", false),
            ("order.*", "order.paid.late", false),
            ("order.#", "order", true),
            ("order.#", "order.paid.late", true),
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("#.late", "order.paid.late", true),
            ("*.paid.#", "order.paid", true),
            ("order.paid", "order.paid", true),
            ("order.paid", "order.sent", false),
        ];
        for (pattern, key, expected) in cases {
            assert_eq!(routes(ExchangeKind::Topic, pattern, key), expected, "{pattern} against {key}");
        }
    }
}
