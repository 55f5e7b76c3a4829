//! The stream that the client library reads and writes, and the runtime that it runs on.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawSocket, AsSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_rs::traits::{Executor, Reactor, RuntimeKit};
use async_rs::util::Task;
use async_rs::{Runtime, Tokio};
use futures_io::{AsyncRead, AsyncWrite};
use futures_util::Stream as FutureStream;
use lapin::AsyncTcpStream;

use super::shallow::Frames;
use super::tune::{Answer, Opening};

/// A stream of tokio's, as the client library sees it.
type TcpStream = <Tokio as Reactor>::TcpStream;

/// Passes everything on, but for what the opening says about the size of frames, and for headers that are too deep.
pub(super) struct Stream {
    inner: AsyncTcpStream<TcpStream>,
    frames: Frames,
    opening: Option<Box<Negotiation>>,
}

struct Negotiation {
    received: Opening,
    sent: Answer,
    /// 0 asks for nothing.
    asked: u32,
    room: u32,
    agreed: Arc<AtomicU32>,
}

impl Stream {
    /// Asks for frames of at most `asked` bytes, 0 for as many as the server allows, and tells the client library `room` more than what is
    /// agreed on, which is noted in `agreed`.
    pub(super) fn new(inner: AsyncTcpStream<TcpStream>, asked: u32, room: u32, agreed: Arc<AtomicU32>) -> Self {
        let opening = Negotiation { received: Opening::default(), sent: Answer::default(), asked, room, agreed };
        Self { inner, frames: Frames::default(), opening: Some(Box::new(opening)) }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(opening) = self.opening.as_mut().filter(|opening| !opening.received.is_over()) else {
            return Pin::new(&mut self.inner).poll_read(cx, buffer);
        };
        loop {
            let given = opening.received.give(buffer);
            if given > 0 || buffer.is_empty() {
                return Poll::Ready(Ok(given));
            }
            let mut bytes = [0; 4096];
            let count = ready!(Pin::new(&mut self.inner).poll_read(cx, &mut bytes))?;
            if count == 0 {
                return Poll::Ready(Ok(0));
            }
            let bytes = bytes.get(..count).unwrap_or_default();
            if let Some(sizes) = opening.received.receive(bytes, opening.asked, opening.room) {
                opening.agreed.store(sizes.agreed, Ordering::Relaxed);
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(this.poll_receive(cx, buffer))?;
        this.frames.pass(buffer.get_mut(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }

    fn poll_read_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        if self.opening.as_ref().is_none_or(|opening| opening.received.is_over()) {
            let this = self.get_mut();
            let count = ready!(Pin::new(&mut this.inner).poll_read_vectored(cx, buffers))?;
            let mut left = count;
            for buffer in buffers {
                let filled = left.min(buffer.len());
                this.frames.pass(buffer.get_mut(..filled).unwrap_or_default());
                left -= filled;
            }
            return Poll::Ready(Ok(count));
        }
        match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
            Some(buffer) => self.poll_read(cx, buffer),
            None => Poll::Ready(Ok(0)),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let Some(opening) = this.opening.as_mut() else {
            return Pin::new(&mut this.inner).poll_write(cx, bytes);
        };
        let (mut changed, agreed) = (bytes.to_vec(), opening.agreed.load(Ordering::Relaxed));
        opening.sent.clone().pass(&mut changed, agreed);
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, &changed))?;
        // Not more than was taken: the rest comes again.
        opening.sent.pass(changed.get_mut(..count).unwrap_or_default(), agreed);
        if opening.sent.is_over && opening.received.is_over() {
            this.opening = None;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.opening.is_none() {
            return Pin::new(&mut self.inner).poll_write_vectored(cx, buffers);
        }
        let bytes = buffers.iter().find(|buffer| !buffer.is_empty()).map_or(&[][..], |buffer| &**buffer);
        self.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

/// tokio, with [`Stream`] for its streams.
#[derive(Debug, Clone)]
pub(super) struct Kit(Tokio);

/// The runtime that all connections of this process share, with a thread of its own: a handler that blocks the threads of the user's
/// runtime must not keep heartbeats from being sent. It lives as long as the process.
fn shared() -> io::Result<Tokio> {
    static RUNTIME: Mutex<Option<tokio::runtime::Runtime>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = match &mut *runtime {
        Some(runtime) => runtime,
        none => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            none.insert(builder.worker_threads(1).thread_name("mqguard-amqp").enable_all().build()?)
        }
    };
    Ok(Tokio::default().with_handle(runtime.handle().clone()))
}

impl Kit {
    pub(super) fn shared() -> io::Result<Runtime<Self>> {
        Ok(Runtime::new(Self(shared()?)))
    }

    /// The runtime underneath, whose streams are those of the system.
    pub(super) fn tokio() -> io::Result<Runtime<Tokio>> {
        Ok(Runtime::new(shared()?))
    }
}

impl RuntimeKit for Kit {}

impl Executor for Kit {
    type Task<T: Send + 'static> = <Tokio as Executor>::Task<T>;

    fn block_on<T, F: Future<Output = T>>(&self, future: F) -> T {
        self.0.block_on(future)
    }

    fn spawn<T: Send + 'static, F: Future<Output = T> + Send + 'static>(&self, future: F) -> Task<Self::Task<T>> {
        self.0.spawn(future)
    }

    fn spawn_blocking<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(&self, work: F) -> Task<Self::Task<T>> {
        self.0.spawn_blocking(work)
    }
}

impl Reactor for Kit {
    type TcpStream = Stream;
    type Sleep = <Tokio as Reactor>::Sleep;

    #[cfg(unix)]
    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    #[cfg(windows)]
    fn register<H: Read + Write + AsSocket + AsRawSocket + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl FutureStream<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    fn tcp_connect_addr(&self, address: SocketAddr) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let connecting = self.0.tcp_connect_addr(address);
        async move { Ok(Stream { inner: AsyncTcpStream::Plain(connecting.await?), frames: Frames::default(), opening: None }) }
    }
}
