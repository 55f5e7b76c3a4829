//! A TCP proxy that does to connections what networks do.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::node::free_port;
use crate::support::Vhost;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the server.
    There,
    /// From the server to the client.
    Back,
}

pub(crate) const BOTH_WAYS: [Way; 2] = [Way::There, Way::Back];

/// Passes connections on until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    target: String,
}

#[derive(Default)]
struct State {
    refuses: bool,
    ended: bool,
    /// Whether there is a listener.
    listens: bool,
    /// What each way does with its bytes.
    flows: [Flow; 2],
    delay: Duration,
    /// The connections that live, by number.
    open: Vec<(u64, [TcpStream; 2])>,
    accepted: u64,
    /// Bytes that were passed on, each way.
    passed: [u64; 2],
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Flow {
    #[default]
    Passes,
    /// Taken, and kept until it passes again.
    Held,
    /// Taken, and gone: nothing but cutting can follow.
    Dropped,
}

impl Proxy {
    /// To the server of a virtual host.
    pub(crate) fn to(vhost: &Vhost) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = Mutex::new(State { listens: true, ..State::default() });
        let shared = Arc::new(Shared { state, changed: Condvar::new(), target: vhost.address().to_owned() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accepting.accept(listener, address));
        Self { address, shared }
    }

    /// The URL of a virtual host by this proxy, with these parameters.
    pub(crate) fn url(&self, vhost: &Vhost, parameters: &str) -> String {
        let (log_in, _) = vhost.authority().rsplit_once('@').expect("a user");
        format!("{}?{parameters}", vhost.url_at(&format!("{log_in}@{}", self.address)))
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        let mut state = self.shared.lock();
        for (_, streams) in state.open.drain(..) {
            streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
        self.shared.changed.notify_all();
    }

    /// From now on, or no longer, nobody listens. Connections that are there stay.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.shared.lock().refuses = refuse;
        self.shared.changed.notify_all();
        // Wakes the one that waits for connections.
        drop(TcpStream::connect(self.address));
        let state = self.shared.lock();
        drop(self.shared.changed.wait_while(state, |state| state.listens == refuse).unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes what comes this way, and keeps it: neither side is told that the other is out of reach.
    pub(crate) fn hold(&self, ways: &[Way]) {
        self.set(ways, Flow::Held);
    }

    /// Takes what comes this way, and loses it.
    pub(crate) fn drop_bytes(&self, ways: &[Way]) {
        self.set(ways, Flow::Dropped);
    }

    /// Passes everything on, what was held first.
    pub(crate) fn release(&self) {
        self.set(&BOTH_WAYS, Flow::Passes);
    }

    /// Makes everything take longer, each way.
    pub(crate) fn delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }

    /// How many connections there were.
    pub(crate) fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }

    /// How many connections there are.
    pub(crate) fn open(&self) -> usize {
        self.shared.lock().open.len()
    }

    /// How many bytes were passed on this way.
    pub(crate) fn passed(&self, way: Way) -> u64 {
        self.shared.lock().passed[way as usize]
    }

    fn set(&self, ways: &[Way], flow: Flow) {
        let mut state = self.shared.lock();
        ways.iter().for_each(|way| state.flows[*way as usize] = flow);
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.cut();
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, mut listener: TcpListener, address: SocketAddr) {
        loop {
            let accepted = listener.accept();
            let mut state = self.lock();
            if state.ended {
                return;
            }
            if state.refuses {
                drop(listener);
                state.listens = false;
                self.changed.notify_all();
                state =
                    self.changed.wait_while(state, |state| state.refuses && !state.ended).unwrap_or_else(PoisonError::into_inner);
                listener = TcpListener::bind(address).expect("nobody else takes the port");
                state.listens = true;
                self.changed.notify_all();
                continue;
            }
            drop(state);
            let (Ok((client, _)), Ok(server)) = (accepted, TcpStream::connect(&self.target)) else { continue };
            self.pass_on(client, server);
        }
    }

    fn pass_on(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let twin = |stream: &TcpStream| stream.try_clone().expect("a second handle");
        for stream in [&client, &server] {
            stream.set_nodelay(true).expect("it is a TCP stream");
        }
        let mut state = self.lock();
        state.accepted += 1;
        let number = state.accepted;
        state.open.push((number, [twin(&client), twin(&server)]));
        drop(state);
        for (way, from, to) in [(Way::There, twin(&client), twin(&server)), (Way::Back, server, client)] {
            let shared = Arc::clone(self);
            std::thread::spawn(move || shared.pump(number, way, from, to));
        }
    }

    /// Passes bytes on one way, until either side ends the connection.
    fn pump(&self, number: u64, way: Way, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let is_held =
                |state: &mut State| state.flows[way as usize] == Flow::Held && state.open.iter().any(|(open, _)| *open == number);
            let mut state = self.changed.wait_while(self.lock(), is_held).unwrap_or_else(PoisonError::into_inner);
            let delay = state.delay;
            if state.flows[way as usize] == Flow::Dropped {
                continue;
            }
            state.passed[way as usize] += count as u64;
            drop(state);
            std::thread::sleep(delay);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        for stream in [from, to] {
            stream.shutdown(Shutdown::Both).ok();
        }
        self.lock().open.retain(|(open, _)| *open != number);
        self.changed.notify_all();
    }
}
