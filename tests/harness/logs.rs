use std::cell::RefCell;
use std::io;
use std::sync::Once;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// What is logged on this thread while it lives. One subscriber serves all threads: a subscriber of one thread only may miss events that
/// another thread came by first.
pub struct Logs(());

thread_local! {
    static CAPTURED: RefCell<Option<(Level, Vec<u8>)>> = const { RefCell::new(None) };
}

impl Logs {
    /// Captures events of this level and above.
    pub fn capture(level: Level) -> Self {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false).with_writer(Capture).init();
        });
        CAPTURED.set(Some((level, Vec::new())));
        Self(())
    }

    pub fn text(&self) -> String {
        CAPTURED.with_borrow(|captured| String::from_utf8(captured.clone().unwrap().1).unwrap())
    }

    /// The lines that contain `text`.
    pub fn with(&self, text: &str) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        CAPTURED.set(None);
    }
}

struct Capture;

/// Writes a line of this level to this thread's capture.
struct Line(Level);

impl<'a> MakeWriter<'a> for Capture {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line(Level::ERROR)
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Line {
        Line(*event.level())
    }
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow_mut(|captured| {
            if let Some((level, text)) = captured
                && self.0 <= *level
            {
                text.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
