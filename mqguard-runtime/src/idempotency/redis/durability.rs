//! Whether the server can lose records that it has confirmed: by a failover, or a restart.

use super::warnings::Settings;

/// How many replicas there are, from the answer to `INFO replication`.
pub(super) fn replicas(info: &str) -> u64 {
    let count = info.lines().find_map(|line| line.strip_prefix("connected_slaves:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// What a failover can lose. The replicas are as many as the server said, or why it did not say.
pub(super) fn failover(settings: &Settings, replicas: Result<u64, &String>) -> Option<String> {
    if settings.get("min-replicas-to-write")? != "0" {
        return None;
    }
    let who = match replicas {
        Ok(0) => return None,
        Ok(1) => "it has a replica".to_owned(),
        Ok(replicas) => format!("it has {replicas} replicas"),
        Err(why) => format!("whether it has replicas could not be checked ({why})"),
    };
    Some(format!(
        "min-replicas-to-write is 0, and {who}. A failover forgets the records that no replica had received: a message of the last moments, \
         or since the server was cut off, can be processed twice. Set `min-replicas-to-write 1` on all of them: that bounds it to \
         `min-replicas-max-lag`, 10 s"
    ))
}

/// What a restart can lose.
pub(super) fn restart(settings: &Settings) -> Option<String> {
    let setting = |name| settings.get(name).map(String::as_str);
    let (what, cure) = match (setting("appendonly")?, setting("save")) {
        ("no", Some("")) => (
            "nothing is kept on disk. A restart of the server forgets every record: a message processed before",
            "appendonly yes",
        ),
        ("no", Some(_)) => (
            "only snapshots are kept on disk. A crash of the server forgets the records since the last one: a message processed since",
            "appendonly yes",
        ),
        ("yes", _) if setting("appendfsync") == Some("no") => (
            "appendfsync is no. A crash of the server's machine forgets the records of about the last 30 s: a message processed then",
            "appendfsync everysec",
        ),
        _ => return None,
    };
    Some(format!("{what} can be processed again. Set `{cure}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(settings: &[(&str, &str)]) -> Settings {
        settings.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn counts_replicas() {
        assert_eq!(replicas("# Replication\r\nrole:master\r\nconnected_slaves:2\r\nslave0:ip=1\r\n"), 2);
        assert_eq!(replicas("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"), 0);
        assert_eq!(replicas(""), 0);
    }

    #[test]
    fn a_failover_is_warned_of_where_there_can_be_one() {
        let (none, one) = (settings(&[("min-replicas-to-write", "0")]), settings(&[("min-replicas-to-write", "1")]));
        for (settings, replicas, says) in
            [(&none, 0, None), (&none, 1, Some("a replica")), (&none, 3, Some("3 replicas")), (&one, 3, None)]
        {
            let text = failover(settings, Ok(replicas));
            assert_eq!(text.is_some(), says.is_some(), "{text:?}");
            assert!(text.unwrap_or_default().contains(says.unwrap_or_default()));
        }
        let why = "NOPERM".to_owned();
        assert!(failover(&none, Err(&why)).is_some_and(|text| text.contains("NOPERM") && text.contains("could not be checked")));
        assert_eq!(failover(&one, Err(&why)), None);
        assert_eq!(failover(&settings(&[]), Ok(1)), None, "a server that does not have the setting");
    }

    #[test]
    fn a_restart_is_warned_of_by_what_it_loses() {
        for (append, save, sync, says) in [
            ("no", "", "everysec", Some("every record")),
            ("no", "3600 1 300 100", "everysec", Some("since the last one")),
            ("yes", "", "no", Some("the last 30 s")),
            ("yes", "", "everysec", None),
            ("yes", "3600 1", "always", None),
        ] {
            let text = restart(&settings(&[("appendonly", append), ("save", save), ("appendfsync", sync)]));
            assert_eq!(text.is_some(), says.is_some(), "{text:?}");
            assert!(text.unwrap_or_default().contains(says.unwrap_or_default()));
        }
        assert_eq!(restart(&settings(&[])), None);
    }
}
