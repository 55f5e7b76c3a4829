use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lapin::{AsyncTcpStream, Connection, ConnectionProperties};

use super::connection::Role;
use super::stream::{Kit, Stream};
use super::url::Nodes;
use super::{errors, tune};
use crate::broker::contract::BrokerError;

/// A connection that was opened.
pub(super) struct Dialled {
    pub(super) connection: Connection,
    pub(super) socket: Socket,
    /// The size of frames that was agreed on, in bytes.
    pub(super) frame_max: u32,
}

/// Opens a connection to one node.
pub(super) async fn dial(nodes: &Nodes, node: usize, role: Role) -> Result<Dialled, BrokerError> {
    let host = hostname::get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let properties = ConnectionProperties::default()
        .with_connection_name(format!("mqguard {host} {} {role}", std::process::id()).into())
        .with_client_property("product".into(), "mqguard".into())
        .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into());
    let no_runtime = |error: std::io::Error| BrokerError::Unavailable(error.to_string());
    let (runtime, tokio) = (Kit::shared().map_err(no_runtime)?, Kit::tokio().map_err(no_runtime)?);
    let socket = Socket::default();
    // A connection attempt that is given up must not leave a thread behind that waits for a server that never answers.
    let mut given_up = ShutOnDrop(Some(socket.clone()));
    let opened = socket.clone();
    // Bodies are published on the other connection only: what is sent on this one is small.
    let room = if role == Role::Consume { tune::ROOM } else { 0 };
    let (asked, agreed) = (nodes.frame_max().unwrap_or_default(), Arc::new(AtomicU32::new(0)));
    let noted = Arc::clone(&agreed);
    let connection = Connection::connector(
        nodes.uri(node),
        runtime,
        async move |uri: lapin::uri::AMQPUri, _runtime| {
            let address = tokio.to_socket_addrs((uri.authority.host.clone(), uri.authority.port));
            let stream = AsyncTcpStream::connect(&tokio, address).await?;
            #[cfg(unix)]
            if let AsyncTcpStream::Plain(stream) = &stream {
                use std::os::fd::AsFd;
                opened.set(stream.get_ref().as_fd().try_clone_to_owned()?.into());
            }
            let stream = match uri.scheme {
                lapin::uri::AMQPScheme::AMQP => stream,
                lapin::uri::AMQPScheme::AMQPS => {
                    let config = lapin::tcp::OwnedTLSConfig::default();
                    stream.into_tls(&uri.authority.host, config.as_ref()).await?
                }
            };
            Ok(AsyncTcpStream::Plain(Stream::new(stream, asked, room, Arc::clone(&noted))))
        },
        properties,
    )
    .await
    .map_err(|error| errors::connecting(&error))?;
    given_up.0 = None;
    Ok(Dialled { connection, socket, frame_max: agreed.load(Ordering::Relaxed) })
}

/// A second handle on the socket of a connection, to end it when the client library cannot.
#[derive(Clone, Default)]
pub(super) struct Socket(Arc<Mutex<SocketState>>);

#[derive(Default)]
struct SocketState {
    stream: Option<std::net::TcpStream>,
    shut: bool,
}

impl Socket {
    #[cfg_attr(not(unix), allow(dead_code))]
    fn set(&self, stream: std::net::TcpStream) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.shut {
            drop(stream.shutdown(Shutdown::Both));
        } else {
            state.stream = Some(stream);
        }
    }

    pub(super) fn shut(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.shut = true;
        if let Some(stream) = state.stream.take() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

struct ShutOnDrop(Option<Socket>);

impl Drop for ShutOnDrop {
    fn drop(&mut self) {
        if let Some(socket) = &self.0 {
            socket.shut();
        }
    }
}
