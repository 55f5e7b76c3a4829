//! Identities, and URLs.

use arbitrary::Arbitrary;
use mqguard_runtime::broker::RabbitMq;
use mqguard_runtime::idempotency::{Identity, RedisStore};

/// Two identities are one when all their parts are, however the parts would read in a row.
#[derive(Debug, Arbitrary)]
pub struct Two {
    one: [String; 3],
    other: [String; 3],
    /// Where the text of the first is cut into the parts of the second, instead.
    cuts: Option<[u8; 2]>,
}

impl Two {
    pub fn try_it(self) {
        let Self { one, mut other, cuts } = self;
        if let Some(cuts) = cuts {
            let text: Vec<char> = one.concat().chars().collect();
            let [first, second] = cuts.map(|cut| usize::from(cut).min(text.len()));
            let (first, second) = (first.min(second), first.max(second));
            other = [&text[..first], &text[first..second], &text[second..]].map(|part| part.iter().collect());
        }
        let is_same = one == other;
        let digest = |[consumer, key, id]: [String; 3]| Identity::new(consumer, key, id).digest();
        assert_eq!(digest(one) == digest(other), is_same);
    }
}

const SECRET: &str = "s3cretP4ssword";

/// A URL with a password in it, wherever that is: nothing that is printed tells it.
#[derive(Debug, Arbitrary)]
pub struct Url {
    scheme: Scheme,
    user: String,
    around: [String; 2],
    rest: String,
}

#[derive(Debug, Arbitrary)]
enum Scheme {
    Amqp,
    Amqps,
    Redis,
    Unix,
    Other(String),
}

impl Url {
    pub fn try_it(&self) {
        let scheme = match &self.scheme {
            Scheme::Amqp => "amqp",
            Scheme::Amqps => "amqps",
            Scheme::Redis => "redis",
            Scheme::Unix => "redis+unix",
            Scheme::Other(other) => other,
        };
        let [before, after] = &self.around;
        let url = format!("{scheme}://{}:{before}{SECRET}{after}@{}", self.user, self.rest);
        let told = match RabbitMq::new(&url) {
            Ok(broker) => format!("{broker:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        // Text that goes on before the `@` may be a host or a path by the grammar of URLs; it is not shown all the same.
        assert!(!told.contains(SECRET), "{url:?}: {told}");
        let told = match RedisStore::new(&url) {
            Ok(store) => format!("{store:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!told.contains(SECRET), "{url:?}: {told}");
    }
}
