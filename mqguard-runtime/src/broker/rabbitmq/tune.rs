//! What is changed in the opening of a connection: how large a frame may be.
//!
//! RabbitMQ sends a message whose headers grew on the way (`x-death`) in a frame beyond what was agreed on, and so it does when others
//! agreed on more. The client library breaks the connection over such a frame, and again over the same message each time that it comes
//! back. So it is told a larger size than the broker, with room for what a broker adds.

/// Room for what brokers add to headers, in bytes: some forty dead-letter hops with names of full length.
pub(super) const ROOM: u32 = 64 * 1024;

/// Taken for a server's size when that has no limit: the client library keeps 64 frames in memory.
const UNLIMITED: u32 = 1024 * 1024;

/// A longer frame is none of an opening.
const LONGEST: usize = 1024 * 1024;

const TUNE: [u8; 4] = [0, 10, 0, 30];
const TUNE_OK: [u8; 4] = [0, 10, 0, 31];

/// Where a tune or tune-ok frame has its method, and its frame size: behind type, channel, length, method and `channel_max`.
const METHOD: std::ops::Range<usize> = 7..11;
const SIZE: std::ops::Range<usize> = 13..17;

/// What was agreed on with the broker, and what the client library is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) agreed: u32,
    told: u32,
}

impl Sizes {
    /// From the server's size, and the one that is asked for; 0 is none.
    fn of(server: u32, asked: u32, room: u32) -> Self {
        let offered = if server == 0 { UNLIMITED } else { server };
        let agreed = if asked == 0 { offered } else { asked.min(offered) };
        // Others may have agreed on all that the server offers.
        Self { agreed, told: if room == 0 { agreed } else { offered.saturating_add(room) } }
    }
}

/// The opening as it is received: gathers whole frames up to the one that says how large frames may be.
#[derive(Debug, Default)]
pub(super) struct Opening {
    gathered: Vec<u8>,
    ready: Vec<u8>,
    done: bool,
}

impl Opening {
    /// Takes what was received.
    pub(super) fn receive(&mut self, bytes: &[u8], asked: u32, room: u32) -> Option<Sizes> {
        self.gathered.extend_from_slice(bytes);
        let mut sizes = None;
        while !self.done {
            let Some(header) = self.gathered.first_chunk::<7>() else { break };
            let [kind, _, _, length @ ..] = *header;
            let length = u32::from_be_bytes(length) as usize;
            // What is no frame is for the client library to complain about.
            if kind != 1 || length > LONGEST {
                self.done = true;
                break;
            }
            if self.gathered.len() < length + 8 {
                break;
            }
            let mut frame: Vec<u8> = self.gathered.drain(..length + 8).collect();
            if frame.get(METHOD) == Some(&TUNE[..])
                && let Some(size) = frame.get_mut(SIZE).and_then(|size| size.first_chunk_mut::<4>())
            {
                let found = Sizes::of(u32::from_be_bytes(*size), asked, room);
                *size = found.told.to_be_bytes();
                sizes = Some(found);
                self.done = true;
            }
            self.ready.append(&mut frame);
        }
        if self.done {
            self.ready.append(&mut self.gathered);
        }
        sizes
    }

    /// Gives out what is ready, as much as there is room for.
    pub(super) fn give(&mut self, to: &mut [u8]) -> usize {
        let count = to.len().min(self.ready.len());
        for (to, byte) in to.iter_mut().zip(self.ready.drain(..count)) {
            *to = byte;
        }
        count
    }

    /// Whether there is nothing more to do: what comes is passed on as it is.
    pub(super) fn is_over(&self) -> bool {
        self.done && self.ready.is_empty()
    }
}

/// The opening as it is sent: follows the bytes up to the frame that agrees to the size.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// Bytes before the first frame: the protocol header.
    before: usize,
    /// Where in its frame the next byte is, and the first bytes of that frame.
    at: usize,
    head: [u8; METHOD.end],
    pub(super) is_over: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self { before: b"AMQP\x00\x00\x09\x01".len(), at: 0, head: [0; METHOD.end], is_over: false }
    }
}

impl Answer {
    /// Follows these bytes, and puts what was agreed on where they agree to something else.
    pub(super) fn pass(&mut self, bytes: &mut [u8], agreed: u32) {
        for byte in bytes {
            if self.is_over {
                return;
            }
            if self.before > 0 {
                self.before -= 1;
                continue;
            }
            if let Some(head) = self.head.get_mut(self.at) {
                *head = *byte;
            }
            let method = self.head.get(METHOD);
            if SIZE.contains(&self.at) && method == Some(&TUNE_OK[..]) {
                if let Some(value) = agreed.to_be_bytes().get(self.at - SIZE.start) {
                    *byte = *value;
                }
                self.is_over = self.at + 1 == SIZE.end;
            }
            self.at += 1;
            let [_, _, _, length @ ..] = *self.head.first_chunk::<7>().unwrap_or(&[0; 7]);
            if self.at >= METHOD.start && self.at == u32::from_be_bytes(length) as usize + 8 {
                self.at = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn frame(method: [u8; 4], rest: &[u8]) -> Vec<u8> {
        let mut frame = vec![1, 0, 0];
        frame.extend(u32::try_from(4 + rest.len()).unwrap().to_be_bytes());
        frame.extend(method);
        frame.extend(rest);
        frame.push(0xce);
        frame
    }

    fn tune(method: [u8; 4], size: u32) -> Vec<u8> {
        let mut rest = vec![7, 255];
        rest.extend(size.to_be_bytes());
        rest.extend([0, 10]);
        frame(method, &rest)
    }

    /// However the bytes are cut.
    #[test]
    fn the_library_is_told_a_larger_size_than_was_agreed_on() {
        let start = frame([0, 10, 0, 10], &[9; 300]);
        let after = b"whatever comes then".to_vec();
        let received = [start.clone(), tune(TUNE, 131_072), after.clone()].concat();
        let expected = [start.clone(), tune(TUNE, 131_072 + ROOM), after.clone()].concat();
        let header = b"AMQP\x00\x00\x09\x01".to_vec();
        let sent = [header.clone(), start.clone(), tune(TUNE_OK, 131_072 + ROOM), after.clone()].concat();
        let answered = [header, start, tune(TUNE_OK, 131_072), after].concat();
        for step in 1..received.len() {
            let (mut opening, mut out, mut sizes) = (Opening::default(), Vec::new(), None);
            for bytes in received.chunks(step) {
                sizes = sizes.or(opening.receive(bytes, 0, ROOM));
                let mut buffer = [0; 7];
                while let count @ 1.. = opening.give(&mut buffer) {
                    out.extend_from_slice(&buffer[..count]);
                }
            }
            assert!(out == expected && opening.is_over(), "in steps of {step}");
            let agreed = sizes.unwrap().agreed;
            let (mut answer, mut out) = (Answer::default(), sent.clone());
            out.chunks_mut(step).for_each(|bytes| answer.pass(bytes, agreed));
            assert!(out == answered && answer.is_over, "in steps of {step}");
        }
    }

    #[test]
    fn sizes() {
        for (server, asked, room, agreed, told) in [
            (131_072, 0, 0, 131_072, 131_072),
            (131_072, 8_192, 0, 8_192, 8_192),
            (131_072, 8_192, ROOM, 8_192, 131_072 + ROOM),
            (131_072, 1 << 20, ROOM, 131_072, 131_072 + ROOM),
            (0, 0, 0, UNLIMITED, UNLIMITED),
            (0, 4_096, ROOM, 4_096, UNLIMITED + ROOM),
        ] {
            assert_eq!(Sizes::of(server, asked, room), Sizes { agreed, told }, "{server} {asked} {room}");
        }
    }

    #[test]
    fn what_is_no_opening_passes_as_it_is() {
        for text in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"AMQP\x00\x00\x09\x01", b"\x01\0\0\xff\xff\xff\xff and so on"] {
            let mut opening = Opening::default();
            assert_eq!(opening.receive(text, 0, ROOM), None);
            let mut out = [0; 64];
            let count = opening.give(&mut out);
            assert_eq!(&out[..count], text);
            assert!(opening.is_over());
        }
    }
}
