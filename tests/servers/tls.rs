//! TLS to each server, with certificates of an authority that only these tests know.

use std::time::{Duration, Instant};

use mqguard::Message;
use mqguard::broker::{Address, Broker, RabbitMq};
use mqguard::idempotency::{MySqlStore, PostgresStore, RedisStore, Store, StoreError};
use sqlx::{Connection, PgConnection, Row};

use crate::authority::{Authority, Certificate};
use crate::mariadb::MariaDb;
use crate::node::{Epmd, Node, free_port};
use crate::process::{Ended, Orders, PATIENCE};
use crate::redis_server::Server;
use crate::support::{until, within};

/// In every URL here, and in nothing that anybody may see.
const PASSWORD: &str = "s3cret-word";

/// How long a refusal may take: it does not get better with time.
const SOON: Duration = Duration::from_secs(20);

/// What is wrong with a server's certificate, and what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Issuer,
    Host,
    Time,
}

const WRONG: [Wrong; 3] = [Wrong::Issuer, Wrong::Host, Wrong::Time];

impl Wrong {
    /// The certificate. That of an issuer whom nobody knows is as good as any.
    fn issue(self, authority: &Authority, file: &str) -> Certificate {
        match self {
            Self::Issuer => authority.good(file),
            Self::Host => authority.issue(file, "another.example", 2999),
            Self::Time => authority.issue(file, "localhost", 2001),
        }
    }

    fn said(self) -> &'static str {
        match self {
            Self::Issuer => "UnknownIssuer",
            Self::Host => "not valid for name",
            Self::Time => "expired",
        }
    }

    #[track_caller]
    fn is_told_in(self, text: &str, place: &str) {
        assert!(text.contains(self.said()), "{self:?}: {text}");
        assert!(text.contains(place), "{self:?}: where? {text}");
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

fn node(proof: &Certificate) -> (Node, u16) {
    let port = free_port();
    let configuration = format!(
        "listeners.ssl.default = 127.0.0.1:{port}\nssl_options.certfile = {}\nssl_options.keyfile = {}\n\
         ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\n",
        proof.certificate.display(),
        proof.key.display()
    );
    let node = Node::start_as("mqguard@localhost", &configuration, &std::sync::Arc::new(Epmd::start()));
    // It opens one port after the other.
    until("the port for TLS is open", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (node, port)
}

fn redis(proof: &Certificate) -> (Server, u16) {
    let port = free_port();
    let (certificate, key) = (proof.certificate.display().to_string(), proof.key.display().to_string());
    let options =
        ["--tls-port", &port.to_string(), "--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    // Trusts whoever the system trusts; it asks nobody for a certificate.
    (Server::with(&[&options[..], &["--tls-ca-cert-file", &certificate]].concat()), port)
}

/// The whole thing as a user has it: two URLs, and a file that says whom to trust.
#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn orders_run_over_tls() {
    let authority = Authority::new();
    let proof = authority.good("server");
    let ((node, broker), (_redis, store)) = (node(&proof), redis(&proof));
    node.vhost().ctl(&["change_password", "guest", PASSWORD]);
    let (broker, store) = (format!("amqps://guest:{PASSWORD}@localhost:{broker}"), format!("rediss://localhost:{store}"));
    let orders = Orders::trusting(&authority.file(), &["--broker", &broker, "--store", &store, "--json"]);
    let ended = orders.ended(PATIENCE);
    ended.summary().assert_adds_up();
    assert!(!ended.stderr.contains(PASSWORD), "{}", ended.stderr);
}

fn run(wrong: Wrong, authority: &Authority, arguments: &[&str]) -> Ended {
    match wrong {
        Wrong::Issuer => Orders::start(arguments).ended(SOON),
        _ => Orders::trusting(&authority.file(), arguments).ended(SOON),
    }
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn a_broker_that_cannot_prove_its_name_is_refused() {
    let authority = Authority::new();
    let (node, port) = node(&authority.good("server"));
    let url = format!("amqps://guest:{PASSWORD}@localhost:{port}");
    for wrong in WRONG {
        wrong.issue(&authority, "server");
        node.vhost().eval("ssl:clear_pem_cache().");
        let ended = run(wrong, &authority, &["--broker", &url]);
        wrong.is_told_in(ended.complaint(), &format!("localhost:{port}"));
        assert!(ended.complaint().contains("SSL_CERT_FILE"), "what helps? {}", ended.complaint());
    }
}

#[test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
fn a_redis_that_cannot_prove_its_name_is_refused() {
    let authority = Authority::new();
    for wrong in WRONG {
        let (_redis, port) = redis(&wrong.issue(&authority, "server"));
        let ended = run(wrong, &authority, &["--store", &format!("rediss://:{PASSWORD}@localhost:{port}")]);
        wrong.is_told_in(ended.complaint(), &format!("localhost:{port}"));
        assert!(ended.complaint().contains("SSL_CERT_FILE"), "what helps? {}", ended.complaint());
    }
}

/// One port for another, both ways.
#[tokio::test]
#[ignore = "needs RabbitMQ and Redis: cargo xtask test"]
async fn a_port_of_the_other_kind_is_told() {
    let authority = Authority::new();
    let proof = authority.good("server");
    let ((node, tls), (redis, redis_tls)) = (node(&proof), redis(&proof));
    let plain = node.vhost().address().rsplit_once(':').expect("host:port").1.to_owned();
    for (url, told) in [
        (format!("amqps://guest:{PASSWORD}@localhost:{plain}"), "no TLS"),
        (format!("amqp://guest:{PASSWORD}@localhost:{tls}"), "amqps://"),
    ] {
        let began = Instant::now();
        let broker = RabbitMq::new(&url).expect("a usable URL");
        let error = within(broker.publish(&Address::queue("q"), &Message::default())).await.expect_err("another kind of port");
        assert!(error.to_string().contains(told) && !error.to_string().contains(PASSWORD), "{error}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
    for url in [format!("rediss://:{PASSWORD}@localhost:{}", redis.port), format!("redis://:{PASSWORD}@localhost:{redis_tls}")] {
        let began = Instant::now();
        let error = within(RedisStore::new(&url).expect("a usable URL").ping()).await.expect_err("another kind of port");
        assert!(error.to_string().contains("localhost:") && !error.to_string().contains(PASSWORD), "{error}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

/// The shared server, which speaks TLS as long as this lives.
struct Postgres {
    url: String,
    admin: PgConnection,
}

impl Postgres {
    async fn speaking_tls(proof: &Certificate) -> Self {
        let url = std::env::var("MQGUARD_TEST_POSTGRES").expect("`cargo xtask test` sets MQGUARD_TEST_POSTGRES");
        let mut admin = PgConnection::connect(&format!("{url}?sslmode=disable")).await.expect("it lets us in");
        let [certificate, key] = [&proof.certificate, &proof.key].map(|path| path.display().to_string());
        for setting in [format!("ssl_cert_file = '{certificate}'"), format!("ssl_key_file = '{key}'"), "ssl = on".into()] {
            must(&mut admin, &format!("ALTER SYSTEM SET {setting}")).await;
        }
        let mut postgres = Self { url, admin };
        postgres.reload("on").await;
        postgres
    }

    /// Waits until new sessions see it.
    async fn reload(&mut self, ssl: &str) {
        must(&mut self.admin, "SELECT pg_reload_conf()").await;
        within(async {
            loop {
                let row = sqlx::query("SHOW ssl").fetch_one(&mut self.admin).await.expect("it says");
                if row.get::<String, _>(0) == ssl {
                    break;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn end(mut self) {
        for setting in ["ssl", "ssl_cert_file", "ssl_key_file"] {
            must(&mut self.admin, &format!("ALTER SYSTEM RESET {setting}")).await;
        }
        self.reload("off").await;
    }
}

async fn must(connection: &mut PgConnection, sql: &str) {
    sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn records_are_kept_over_tls_in_postgresql() {
    let authority = Authority::new();
    let mut postgres = Postgres::speaking_tls(&authority.good("server")).await;
    let (user, rest) = postgres.url.split_once("@127.0.0.1").expect("a URL");
    let options = format!("sslmode=verify-full&sslrootcert={}", authority.file().display());
    let url = format!("{user}@localhost{rest}?{options}");
    let store = PostgresStore::new(&url).expect("a usable URL");
    store.ping().await.expect("a session");
    let tls = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'mqguard'";
    let count: i64 = sqlx::query_scalar(tls).fetch_one(&mut postgres.admin).await.expect("it says");
    assert_eq!(count, 1);

    let place = format!("localhost{}", rest.split('/').next().unwrap_or_default());
    let url = url.replacen("mqguard:mqguard@", &format!("mqguard:{PASSWORD}@"), 1);
    for wrong in WRONG {
        wrong.issue(&authority, "server");
        must(&mut postgres.admin, "SELECT pg_reload_conf()").await;
        let authorities_of_the_system = url.split("&sslrootcert").next().unwrap_or_default();
        let url = if wrong == Wrong::Issuer { authorities_of_the_system } else { &url };
        refused(wrong, &PostgresStore::new(url).expect("a usable URL"), &place).await;
    }
    postgres.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: cargo xtask test"]
async fn records_are_kept_over_tls_in_mariadb() {
    let authority = Authority::new();
    let options = format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={}", authority.file().display());
    let mariadb = MariaDb::start(PASSWORD, &authority.good("server"));
    let place = format!("localhost:{}", mariadb.port);
    let url = |options: &str| format!("mysql://mqguard:{PASSWORD}@localhost:{}/mqguard?{options}", mariadb.port);
    // Its user comes by TLS only.
    MySqlStore::new(&url(&options)).expect("a usable URL").ping().await.expect("a session");
    let plain = MySqlStore::new(&url("ssl-mode=DISABLED")).expect("a usable URL").ping().await;
    assert!(matches!(plain, Err(StoreError::Refused(_))), "{plain:?}");
    refused(Wrong::Issuer, &MySqlStore::new(&url("ssl-mode=VERIFY_IDENTITY")).expect("a usable URL"), &place).await;
    drop(mariadb);

    for wrong in [Wrong::Host, Wrong::Time] {
        let mariadb = MariaDb::start(PASSWORD, &wrong.issue(&authority, "server"));
        let url = format!("mysql://mqguard:{PASSWORD}@localhost:{}/mqguard?{options}", mariadb.port);
        refused(wrong, &MySqlStore::new(&url).expect("a usable URL"), &format!("localhost:{}", mariadb.port)).await;
    }
}

async fn refused(wrong: Wrong, store: &dyn Store, place: &str) {
    let error = within(store.ping()).await.expect_err("it proves nothing");
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    wrong.is_told_in(&error.to_string(), place);
}
