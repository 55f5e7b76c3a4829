//! Compares what was done to the messages of one queue with what is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use mqguard::Reason;

use crate::ledger::{Line, What};
use crate::worker::{DELAY, Fate, MAX_RETRIES, PREFETCH, TRANSACTIONAL, fate};

/// A message that was held at more kills becomes a letter.
const MAX_CRASHES: usize = 3;

/// All that is known of one queue.
pub(crate) struct Part {
    pub(crate) queue: &'static str,
    pub(crate) messages: RangeInclusive<u32>,
    pub(crate) lines: Vec<Line>,
    /// The message of each effect, as often as it was had.
    pub(crate) effects: Vec<u32>,
    pub(crate) letters: Vec<(u32, Reason)>,
    pub(crate) killed: BTreeSet<u32>,
    /// How often connections were closed.
    pub(crate) closures: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Figures {
    queue: &'static str,
    messages: usize,
    /// Claims that were held at a kill.
    held: usize,
    /// Deliveries that were given back.
    returned: usize,
    lapses: usize,
    lost: usize,
    doubled: usize,
    early: usize,
    /// Beyond those that a message needs if nobody is killed.
    extra_runs: usize,
    letters: usize,
    repeated_letters: usize,
    crash_loops: usize,
    /// From a failure to the next run, in the median.
    delay: Duration,
    pub(crate) problems: Vec<String>,
}

/// What is known of one message.
struct History<'a> {
    lines: &'a [&'a Line],
    killed: &'a BTreeSet<u32>,
    effects: usize,
    letters: Vec<&'a Reason>,
}

impl History<'_> {
    /// The processes in which a claim was held when they were killed. One that may have been granted counts.
    fn deaths(&self) -> BTreeSet<u32> {
        let mut held = BTreeSet::new();
        for line in self.lines {
            match &line.what {
                What::Ask(owner) => drop(held.insert((line.process, owner))),
                What::Busy(owner) | What::Free(owner) | What::Complete(owner) => drop(held.remove(&(line.process, owner))),
                // Only one can have been processed; of a transaction this is what tells it.
                What::Processed => held.retain(|(process, _)| *process != line.process),
                _ => {}
            }
        }
        held.into_iter().map(|(process, _)| process).filter(|process| self.killed.contains(process)).collect()
    }

    fn count(&self, is_counted: impl Fn(&What) -> bool) -> usize {
        self.lines.iter().filter(|line| is_counted(&line.what)).count()
    }

    fn runs(&self) -> usize {
        self.count(|what| matches!(what, What::Begin(_)))
    }

    fn returns(&self) -> usize {
        self.count(|what| *what == What::Returned)
    }

    /// Claims that were lost in a process that lived: on a machine that stands still for longer than a lease.
    fn lapses(&self) -> usize {
        self.count(|what| *what == What::Again).saturating_sub(self.count(|what| matches!(what, What::Busy(_))))
    }

    fn is_recorded_as_processed(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.what, What::Complete(_) | What::Processed))
    }

    /// From the first failure of each run to the first beginning of the next; what a kill cuts short begins again without delay.
    fn delays(&self) -> Vec<Duration> {
        let first = |what: &What| self.lines.iter().find(|line| line.what == *what).map(|line| line.at);
        let pairs =
            (0..MAX_RETRIES).filter_map(|retries| Some((first(&What::Failure(retries))?, first(&What::Begin(retries + 1))?)));
        pairs.map(|(failed, began)| began.saturating_sub(failed)).collect()
    }

    /// Whether each effect but one was had in a process that was killed before it could record it, or that had lost its claim.
    fn doubles_are_of_kills(&self, deaths: &BTreeSet<u32>) -> bool {
        let effects: Vec<u32> = self.lines.iter().filter(|line| line.what == What::Effect).map(|line| line.process).collect();
        let cut = effects.iter().filter(|process| deaths.contains(process)).collect::<BTreeSet<_>>().len();
        cut + self.lapses() + 1 >= effects.len()
    }
}

impl Part {
    pub(crate) fn audit(&self) -> Figures {
        let mut by_message = BTreeMap::<u32, Vec<&Line>>::new();
        for line in &self.lines {
            by_message.entry(line.message).or_default().push(line);
        }
        let mut figures = Figures { queue: self.queue, messages: self.messages.clone().count(), ..Figures::default() };
        let mut delays = Vec::new();
        for message in self.messages.clone() {
            let mut lines = by_message.remove(&message).unwrap_or_default();
            lines.sort_by_key(|line| line.at);
            let history = History {
                lines: &lines,
                killed: &self.killed,
                effects: self.effects.iter().filter(|effect| **effect == message).count(),
                letters: self.letters.iter().filter(|(letter, _)| *letter == message).map(|(_, reason)| reason).collect(),
            };
            delays.extend(history.delays());
            let before = figures.problems.len();
            self.ends(&mut figures, message, &history);
            self.runs(&mut figures, message, &history);
            if let Some(problem) = figures.problems.get_mut(before..).and_then(|new| new.last_mut()) {
                lines.iter().for_each(|line| *problem += &format!("\n    {:?} p{} {:?}", line.at, line.process, line.what));
            }
        }
        delays.sort();
        figures.delay = delays.get(delays.len() / 2).copied().unwrap_or_default();
        let unknown: Vec<_> = by_message.keys().collect();
        figures.check(unknown.is_empty(), || format!("messages that nobody published: {unknown:?}"));
        let most = self.killed.len() * PREFETCH;
        figures.check(figures.doubled <= most, || format!("more doubled than the {most} that were out at kills"));
        figures
    }

    /// Each message has its effect, or its letter.
    fn ends(&self, figures: &mut Figures, message: u32, history: &History<'_>) {
        let name = format!("{} {message} ({:?})", self.queue, fate(message));
        let (effects, letters) = (history.effects, &history.letters);
        let is_condemned = letters.contains(&&Reason::CrashLoop);
        let expected = match fate(message) {
            Fate::After(_) => None,
            Fate::Fatal => Some(Reason::Fatal),
            Fate::Never => Some(Reason::Exhausted),
        };
        let is_lost = if expected.is_none() { effects == 0 && !is_condemned } else { letters.is_empty() };
        figures.lost += usize::from(is_lost);
        figures.check(!is_lost, || format!("{name}: lost"));
        figures.check(expected.is_none() || effects == 0, || format!("{name}: {effects} effects of failures"));
        let is_right = |reason: &&Reason| **reason == Reason::CrashLoop || Some(*reason) == expected.as_ref();
        figures.check(letters.iter().all(is_right), || format!("{name}: letters {letters:?}"));
        figures.letters += usize::from(!letters.is_empty());
        figures.repeated_letters += letters.len().saturating_sub(1);

        let deaths = history.deaths();
        // A process died, or its connection, before it knew that the letter was out.
        let is_explained = letters.len() <= 1 + deaths.len() + self.closures;
        figures.check(is_explained, || format!("{name}: {} letters, held at the kills of {deaths:?}", letters.len()));
        figures.crash_loops += usize::from(is_condemned);
        figures.check(!is_condemned || deaths.len() + history.lapses() > MAX_CRASHES, || {
            format!("{name}: a crash loop of kills {deaths:?}")
        });
        let is_processed = history.is_recorded_as_processed() || self.queue == TRANSACTIONAL && effects > 0;
        figures.check(letters.is_empty() || !is_processed, || format!("{name}: a letter for a success"));

        figures.doubled += usize::from(effects > 1);
        let may_double = self.queue != TRANSACTIONAL && history.doubles_are_of_kills(&deaths);
        figures.check(effects <= 1 || may_double, || format!("{name}: {effects} effects, held at the kills of {deaths:?}"));
    }

    /// None is run early, and none more often than it needs, but once more for each kill and for each connection that was closed
    /// before the retry was with the broker.
    fn runs(&self, figures: &mut Figures, message: u32, history: &History<'_>) {
        let name = format!("{} {message} ({:?})", self.queue, fate(message));
        let deaths = history.deaths().len();
        figures.held += deaths;
        let needed = match fate(message) {
            Fate::After(failures) => failures + 1,
            Fate::Fatal => 1,
            Fate::Never => MAX_RETRIES + 1,
        };
        let extra = history.runs().saturating_sub(needed as usize);
        figures.extra_runs += extra;
        let (returns, lapses) = (history.returns(), history.lapses());
        figures.returned += returns;
        figures.lapses += lapses;
        figures.check(extra <= deaths + returns + lapses, || {
            format!("{name}: {extra} runs too many, held at {deaths} kills, given back {returns} times, lost {lapses} times")
        });
        figures.check(returns <= self.closures, || format!("{name}: given back {returns} times"));
        let early: Vec<_> = history.delays().into_iter().filter(|delay| *delay < DELAY).collect();
        figures.early += early.len();
        figures.check(early.is_empty(), || format!("{name}: retried after {early:?}"));
    }
}

impl Figures {
    pub(crate) const HEAD: &str =
        "queue                messages held returned lapses lost doubled early extra runs letters repeated crash loops delay";

    fn check(&mut self, is_so: bool, problem: impl FnOnce() -> String) {
        if !is_so {
            self.problems.push(problem());
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            queue,
            messages,
            held,
            returned,
            lapses,
            lost,
            doubled,
            early,
            extra_runs,
            letters,
            repeated_letters,
            crash_loops,
            delay,
            ..
        } = self;
        write!(
            f,
            "{queue:20} {messages:8} {held:4} {returned:8} {lapses:6} {lost:4} {doubled:7} {early:5} {extra_runs:10} \
             {letters:7} {repeated_letters:8} {crash_loops:11} {} ms",
            delay.as_millis()
        )
    }
}
