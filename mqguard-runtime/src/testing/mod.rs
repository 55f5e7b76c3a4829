//! Crash enumeration: puts consumers through every crash, on the embedded broker and in virtual time.
//!
//! [`CrashTest`] runs a schedule (messages are published, and handled until nothing is left to do) once without faults and counts the
//! steps: everything that the process asks of the broker and the store. Then it runs the schedule again for each step and each
//! [`Fault`] that can happen there, and with [`pairs`](CrashTest::pairs) for two of them. A process that dies is followed by another,
//! on the same queues and records. After each schedule, what mqguard promises has to hold (see [`Invariant`]), and whatever your
//! [`check`](CrashTest::check) says of your own data.
//!
//! In the place of a process that is killed, one is cut off: nothing that it asks for has an effect any more, and its handlers are
//! dropped at the next point where they wait. What a handler has spawned on its own goes on; code that never waits ends first.

mod broker;
mod crash_test;
mod ending;
mod enumerate;
mod fault;
mod known;
mod process;
mod producer;
mod report;
mod run;
mod step;
mod store;
mod subscription;
mod violation;
mod witness;
mod world;

pub use crash_test::CrashTest;
pub use fault::{Fault, Schedule};
pub use report::Report;
pub use step::{StepKind, TraceLine};
pub use violation::{Invariant, Violation};
