use std::net::Shutdown;
use std::sync::{Arc, Mutex, PoisonError};

use lapin::{Connection, ConnectionProperties};

use super::connection::Role;
use super::errors;
use super::url::Nodes;
use crate::broker::contract::BrokerError;

/// Opens a connection to one node.
pub(super) async fn dial(nodes: &Nodes, node: usize, role: Role) -> Result<(Connection, Socket), BrokerError> {
    let host = hostname::get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let properties = ConnectionProperties::default()
        .with_connection_name(format!("mqguard {host} {} {role}", std::process::id()).into())
        .with_client_property("product".into(), "mqguard".into())
        .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into());
    let runtime = lapin::runtime::default_runtime().map_err(|error| BrokerError::Unavailable(errors::reason(&error)))?;
    let socket = Socket::default();
    // A connection attempt that is given up must not leave a thread behind that waits for a server that never answers.
    let mut given_up = ShutOnDrop(Some(socket.clone()));
    let opened = socket.clone();
    let connection = Connection::connector(
        nodes.uri(node),
        runtime,
        async move |uri: lapin::uri::AMQPUri, runtime| {
            let address = runtime.to_socket_addrs((uri.authority.host.clone(), uri.authority.port));
            let stream = lapin::AsyncTcpStream::connect(&runtime, address).await?;
            #[cfg(unix)]
            if let lapin::AsyncTcpStream::Plain(stream) = &stream {
                use std::os::fd::AsFd;
                opened.set(stream.get_ref().as_fd().try_clone_to_owned()?.into());
            }
            match uri.scheme {
                lapin::uri::AMQPScheme::AMQP => Ok(stream),
                lapin::uri::AMQPScheme::AMQPS => {
                    let config = lapin::tcp::OwnedTLSConfig::default();
                    Ok(stream.into_tls(&uri.authority.host, config.as_ref()).await?)
                }
            }
        },
        properties,
    )
    .await
    .map_err(|error| errors::connecting(&error))?;
    given_up.0 = None;
    Ok((connection, socket))
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
