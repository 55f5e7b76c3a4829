use std::io;
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// What is logged on this thread while it lives.
pub struct Logs {
    lines: Lines,
    _subscriber: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Logs {
    pub fn capture(level: Level) -> Self {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(lines.clone()).finish();
        Self { lines, _subscriber: tracing::subscriber::set_default(subscriber) }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines that contain `text`.
    pub fn with(&self, text: &str) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
