//! What the workers did, as each wrote it down at once: what a killed process has written is there.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Run,
    /// Its success was recorded.
    Processed,
    /// It came again and was recognised.
    Duplicate,
}

/// One worker's.
pub(crate) struct Diary(File);

/// Kind, number of the message, nanoseconds of the system's clock, which all workers share.
const LENGTH: usize = 13;

impl Diary {
    pub(crate) fn create(path: &Path) -> Self {
        Self(File::create(path).expect("a file"))
    }

    pub(crate) fn note(&self, what: What, number: u32) {
        let nanos = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_nanos();
        let mut record = [0; LENGTH];
        record[0] = what as u8;
        record[1..5].copy_from_slice(&number.to_le_bytes());
        record[5..].copy_from_slice(&u64::try_from(nanos).expect("a time before 2554").to_le_bytes());
        (&self.0).write_all(&record).expect("it is written");
    }
}

/// What is known of a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    runs: Vec<u64>,
    /// When its success was recorded, as far as anybody noted it.
    done: Option<u64>,
    duplicates: u32,
}

impl Entry {
    pub(crate) fn has_ended(&self) -> bool {
        self.done.is_some()
    }

    pub(crate) fn has_run_after_its_success(&self) -> bool {
        self.done.is_some_and(|done| self.runs.iter().any(|run| *run > done))
    }

    pub(crate) fn duplicates(&self) -> u32 {
        self.duplicates
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }
}

/// All diaries in a directory, by message.
pub(crate) fn read(directory: &Path) -> HashMap<u32, Entry> {
    let mut entries: HashMap<u32, Entry> = HashMap::new();
    for file in std::fs::read_dir(directory).expect("a directory") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("a file");
        for record in bytes.chunks_exact(LENGTH) {
            let number = u32::from_le_bytes(record[1..5].try_into().expect("4 bytes"));
            let at = u64::from_le_bytes(record[5..].try_into().expect("8 bytes"));
            let entry = entries.entry(number).or_default();
            match record[0] {
                what if what == What::Run as u8 => entry.runs.push(at),
                what => {
                    // Who is killed between the record and its note leaves a success that only duplicates tell of.
                    entry.done = Some(entry.done.map_or(at, |done| done.min(at)));
                    entry.duplicates += u32::from(what == What::Duplicate as u8);
                }
            }
        }
    }
    entries
}
