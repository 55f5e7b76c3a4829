//! Three RabbitMQ nodes on this machine that are one cluster.

use std::fmt::Write;
use std::sync::Arc;

use crate::node::{Epmd, Node};
use crate::support::{Vhost, until};

const NAMES: [&str; 3] = ["mqguard-1@localhost", "mqguard-2@localhost", "mqguard-3@localhost"];

pub(crate) struct Cluster {
    nodes: [Node; 3],
}

impl Cluster {
    /// All at once: each waits for the others that its configuration names.
    pub(crate) fn start() -> Self {
        let mut configuration = "cluster_formation.peer_discovery_backend = classic_config\n".to_owned();
        for (name, number) in NAMES.iter().zip(1..) {
            writeln!(configuration, "cluster_formation.classic_config.nodes.{number} = {name}").expect("text");
        }
        let epmd = Arc::new(Epmd::start());
        let nodes = std::thread::scope(|scope| {
            let (configuration, epmd) = (&configuration, &epmd);
            let starting = NAMES.map(|name| scope.spawn(move || Node::start_as(name, configuration, epmd)));
            starting.map(|node| node.join().expect("it starts"))
        });
        let cluster = Self { nodes };
        until("the nodes form a cluster", || cluster.vhost(0).ctl(&["eval", "length(nodes())."]).trim() == "2");
        cluster
    }

    /// The virtual host `/`, as the tools of this node see it.
    pub(crate) fn vhost(&self, node: usize) -> Vhost {
        self.nodes[node].vhost()
    }

    /// The URL that names all nodes.
    pub(crate) fn url(&self) -> String {
        let addresses: Vec<String> = (0..self.nodes.len()).map(|node| self.vhost(node).address().to_owned()).collect();
        self.vhost(0).url_at(&format!("guest:guest@{}", addresses.join(",")))
    }

    /// The node that leads a quorum queue.
    pub(crate) fn leader(&self, queue: &str) -> usize {
        index(&self.vhost(0).queues("leader")[queue])
    }

    /// The node that the consumer of a queue is connected to.
    pub(crate) fn consumed_from(&self, queue: &str) -> usize {
        let consumers = self.vhost(0).ctl(&["list_consumers", "--quiet", "--no-table-headers", "queue_name", "channel_pid"]);
        let channels: Vec<&str> = consumers.lines().filter_map(|line| line.strip_prefix(queue)?.strip_prefix('\t')).collect();
        assert_eq!(channels.len(), 1, "{consumers}");
        index(channels[0])
    }

    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Starts a node that was killed, and waits until all queues are on all nodes again: only then can they bear to lose another.
    pub(crate) fn restart(&mut self, node: usize) {
        self.nodes[node].run();
        let vhost = self.vhost(node);
        until("all queues are on all nodes", || {
            vhost.queues("online").values().all(|online| NAMES.iter().all(|name| online.contains(name)))
        });
    }
}

/// The node that a text names.
#[track_caller]
fn index(text: &str) -> usize {
    NAMES.iter().position(|name| text.contains(name)).unwrap_or_else(|| panic!("no node in {text}"))
}
