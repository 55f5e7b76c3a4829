//! Answers a batch of questions with as few statements as there can be.
//!
//! A claim of a new message is one insert, and a step of its owner one guarded update: most batches are one statement of each. For what
//! meets something else the rows are read, the transitions of [`protocol`] decide, and what they change is written on the
//! condition that the row is still as it was read; where it is not, once more. Where a database cannot tell which of several rows it has
//! changed, the next read tells it: who released a message that somebody else has claimed since must not be refused.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::contract::{Claim, ClaimRequest, Hold, Mode, Owner, Settled, Step, StoreError, Turn};
use super::super::protocol::{self, Record, State};
use super::dialect::Dialect;
use super::key::Key;
use super::row::{Insert, Row, Update, Values, status};

/// How often rows are read again because others were faster. Each time somebody else has got on.
const ROUNDS: usize = 50;

/// What is asked of one record.
#[derive(Debug)]
pub(super) enum Call {
    Claim(ClaimRequest),
    Settle(Hold, Step),
    /// Whether the table can be used.
    Ping,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Claim(Claim),
    Settled(Settled),
    Pong,
}

pub(super) type Answers = Vec<Result<Answer, StoreError>>;

impl Call {
    pub(super) fn key(&self) -> Option<Key> {
        match self {
            Self::Claim(request) => Some(Key::of(&request.identity)),
            Self::Settle(hold, _) => Some(Key::of(&hold.identity)),
            Self::Ping => None,
        }
    }

    fn ttl(&self) -> Duration {
        match self {
            Self::Claim(ClaimRequest { ttl, .. }) | Self::Settle(Hold { ttl, .. }, _) => *ttl,
            Self::Ping => Duration::ZERO,
        }
    }

    /// On a clock that shows 0.
    fn transition(&self, record: Option<&Record>) -> (Answer, Option<Record>) {
        match self {
            Self::Claim(request) => {
                let (claim, changed) = protocol::claim(record, request, 0);
                (Answer::Claim(claim), changed)
            }
            Self::Settle(hold, step) => {
                let (settled, changed) = protocol::settle(record, hold, step, 0);
                (Answer::Settled(settled), changed)
            }
            Self::Ping => (Answer::Pong, None),
        }
    }
}

/// The questions about one record, in the order in which they came.
struct Group {
    key: Key,
    calls: Vec<usize>,
}

/// How the row looks if the last write of a group was done, where the database could not tell or its answer was lost, and what the
/// answers are then.
struct Perhaps {
    revision: i64,
    status: &'static str,
    owner: Option<String>,
    answers: Vec<(usize, Answer)>,
}

impl Perhaps {
    /// Nobody else writes with the token of an owner.
    fn is(&self, row: &Row) -> bool {
        row.revision == self.revision && row.status == self.status && row.owner == self.owner
    }
}

/// How a group is answered, if what it changes can be written.
struct Plan {
    group: Group,
    answers: Vec<Answer>,
    write: Option<Write>,
}

enum Write {
    Insert(Values),
    Update { was_status: String, was_owner: Option<String>, was_revision: Option<i64>, anew: bool, values: Values },
}

/// Questions, and the answers that are known: they stay known when what else was asked with them fails.
pub(super) struct Exchange<'a> {
    mode: Mode,
    calls: &'a [Call],
    answers: Vec<Option<Result<Answer, StoreError>>>,
    perhaps: BTreeMap<Key, Perhaps>,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(mode: Mode, calls: &'a [Call]) -> Self {
        Self { mode, calls, answers: calls.iter().map(|_| None).collect(), perhaps: BTreeMap::new() }
    }

    /// The questions without an answer; steps first, they end what others wait for.
    pub(super) fn open(&self) -> Vec<usize> {
        let mut open: Vec<_> = (0..self.calls.len()).filter(|&nth| self.answers[nth].is_none()).collect();
        open.sort_by_key(|&nth| matches!(self.calls[nth], Call::Claim(_)));
        open
    }

    pub(super) fn is_answered(&self, nth: usize) -> bool {
        self.answers[nth].is_some()
    }

    pub(super) fn call(&self, nth: usize) -> &'a Call {
        &self.calls[nth]
    }

    /// What cannot be found out by asking.
    pub(super) fn set(&mut self, nth: usize, answer: Result<Answer, StoreError>) {
        self.answers[nth] = Some(answer);
    }

    /// The answers, where there is none this one.
    pub(super) fn finish(self, otherwise: &Result<Answer, StoreError>) -> Answers {
        self.answers.into_iter().map(|answer| answer.unwrap_or_else(|| otherwise.clone())).collect()
    }

    /// Asks these of the questions that have no answer. Those whose row others change all the time have none then.
    pub(super) async fn run<D: Dialect>(&mut self, connection: &mut D::Connection, asked: &[usize]) -> sqlx::Result<()> {
        D::begin(connection).await?;
        let done = match self.rounds::<D>(connection, asked).await {
            Ok(()) => D::commit(connection).await,
            Err(why) => Err(why),
        };
        if let Err(why) = done {
            D::rollback(connection).await;
            return Err(why);
        }
        for &nth in asked.iter().filter(|&&nth| matches!(self.calls[nth], Call::Ping)) {
            self.answers[nth] = Some(Ok(Answer::Pong));
        }
        Ok(())
    }

    /// Forgets the answers to these: what was written is not there any more.
    pub(super) fn forget(&mut self, asked: &[usize]) {
        asked.iter().for_each(|&nth| self.answers[nth] = None);
    }

    async fn rounds<D: Dialect>(&mut self, connection: &mut D::Connection, asked: &[usize]) -> sqlx::Result<()> {
        let groups = self.groups(asked);
        if groups.is_empty() {
            let nobody = Key { consumer: String::new(), business_key: String::new(), msg_id: String::new() };
            D::read(connection, self.mode, &[&nobody]).await?;
            for statement in D::trial(self.mode) {
                D::script(connection, statement).await?;
            }
            return Ok(());
        }
        let (plans, mut left) = self.without_reading(groups);
        left.extend(self.carry_out::<D>(connection, plans).await?);
        for _ in 0..ROUNDS {
            if left.is_empty() {
                break;
            }
            left.sort_by(|one, other| one.key.cmp(&other.key));
            let rows = D::read(connection, self.mode, &left.iter().map(|group| &group.key).collect::<Vec<_>>()).await?;
            let plans = left.into_iter().zip(rows).filter_map(|(group, row)| self.by_row(group, row.as_ref())).collect();
            left = self.carry_out::<D>(connection, plans).await?;
        }
        Ok(())
    }

    /// In the order of their keys, so that two processes lock rows in the same order. Pings are answered by everything else.
    fn groups(&self, asked: &[usize]) -> Vec<Group> {
        let mut groups = BTreeMap::<Key, Vec<usize>>::new();
        for &nth in asked.iter().filter(|&&nth| self.answers[nth].is_none()) {
            if let Some(key) = self.calls[nth].key() {
                groups.entry(key).or_default().push(nth);
            }
        }
        groups
            .into_iter()
            .map(|(key, mut calls)| {
                calls.sort_unstable();
                Group { key, calls }
            })
            .collect()
    }

    /// What most questions come to can be written without a look at the row. The rest of the groups is left.
    fn without_reading(&self, groups: Vec<Group>) -> (Vec<Plan>, Vec<Group>) {
        let (mut plans, mut left) = (Vec::new(), Vec::new());
        for group in groups {
            let plan = match group.calls[..] {
                [nth] => self.guess(&self.calls[nth]),
                _ => None,
            };
            match plan {
                Some((answer, write)) => plans.push(Plan { group, answers: vec![answer], write: Some(write) }),
                None => left.push(group),
            }
        }
        (plans, left)
    }

    fn guess(&self, call: &Call) -> Option<(Answer, Write)> {
        match call {
            // A producer has registered it, as a rule.
            Call::Claim(_) if self.mode == Mode::StateMachine => None,
            Call::Claim(request) if request.turn == Turn::default() => {
                let (answer, changed) = call.transition(None);
                Some((answer, Write::Insert(Values::all(&changed?, request.ttl))))
            }
            Call::Settle(hold, step) => guess_step(call, hold, step),
            _ => None,
        }
    }

    /// As the row says; `None` when that has been answered.
    fn by_row(&mut self, group: Group, row: Option<&Row>) -> Option<Plan> {
        if let (Some(perhaps), Some(row)) = (self.perhaps.remove(&group.key), row)
            && perhaps.is(row)
        {
            perhaps.answers.into_iter().for_each(|(nth, answer)| self.answers[nth] = Some(Ok(answer)));
            return None;
        }
        let mut record = match row.map_or(Ok(None), |row| row.record(&group.key)) {
            Ok(record) => record,
            Err(why) => {
                group.calls.iter().for_each(|&nth| self.answers[nth] = Some(Err(why.clone())));
                return None;
            }
        };
        let (mut answers, mut values) = (Vec::new(), None);
        for &nth in &group.calls {
            let (answer, changed) = self.calls[nth].transition(record.as_ref());
            answers.push(answer);
            if let Some(changed) = changed {
                values = Some(Values::all(&changed, self.calls[nth].ttl()));
                record = Some(changed);
            }
        }
        let write = values.map(|values| match row {
            None => Write::Insert(values),
            Some(row) => Write::Update {
                was_status: row.status.clone(),
                was_owner: row.owner.clone(),
                was_revision: Some(row.revision),
                anew: !row.is_kept,
                values,
            },
        });
        Some(Plan { group, answers, write })
    }

    /// Writes, and answers what was written; the groups of which somebody else changed the row are left.
    async fn carry_out<D: Dialect>(&mut self, connection: &mut D::Connection, plans: Vec<Plan>) -> sqlx::Result<Vec<Group>> {
        let (mut inserts, mut updates, mut waiting) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        for Plan { group, answers, write } in plans {
            let key = group.key.clone();
            match write {
                None => self.answer(group, answers),
                Some(Write::Insert(values)) => {
                    inserts.push(Insert { key, values });
                    waiting[0].push((group, answers));
                }
                Some(Write::Update { was_status, was_owner, was_revision, anew, values }) => {
                    if let Some(revision) = was_revision {
                        let answers = group.calls.iter().copied().zip(answers.clone()).collect();
                        let (status, owner) = (values.status, values.owner.clone());
                        self.perhaps.insert(key.clone(), Perhaps { revision: revision + 1, status, owner, answers });
                    }
                    updates.push(Update { key, was_status, was_owner, was_revision, anew, values });
                    waiting[1].push((group, answers));
                }
            }
        }
        let [inserting, updating] = waiting;
        let mut left = Vec::new();
        if !inserts.is_empty() {
            let written = D::insert(connection, self.mode, &inserts).await?;
            left.extend(self.answer_written(inserting, written));
        }
        if !updates.is_empty() {
            let written = D::update(connection, self.mode, &updates).await?;
            left.extend(self.answer_written(updating, written));
        }
        Ok(left)
    }

    /// The groups whose write was not done are left.
    fn answer_written(&mut self, groups: Vec<(Group, Vec<Answer>)>, written: Vec<bool>) -> Vec<Group> {
        let mut left = Vec::new();
        for ((group, answers), written) in groups.into_iter().zip(written) {
            if written { self.answer(group, answers) } else { left.push(group) }
        }
        left
    }

    fn answer(&mut self, group: Group, answers: Vec<Answer>) {
        self.perhaps.remove(&group.key);
        for (nth, answer) in group.calls.into_iter().zip(answers) {
            self.answers[nth] = Some(Ok(answer));
        }
    }
}

/// The success of a claim, as a change of its row.
pub(super) fn completion(hold: &Hold) -> Update {
    let values = Values::of_step(&Record { state: State::Success, ..processing(hold.owner) }, None, hold.ttl);
    let was_owner = Some(hold.owner.to_string());
    let was_status = status(State::Processing).to_owned();
    Update { key: Key::of(&hold.identity), was_status, was_owner, was_revision: None, anew: false, values }
}

/// What a step becomes when the record is in the state to which the step applies.
fn guess_step(call: &Call, hold: &Hold, step: &Step) -> Option<(Answer, Write)> {
    let state = if *step == Step::Lettered { State::Failed } else { State::Processing };
    let before = Record { state, ..processing(hold.owner) };
    let (answer, after) = call.transition(Some(&before));
    let after = after?;
    let turn = if let Step::Release { next } = step { Some(*next) } else { None };
    let write = Write::Update {
        was_status: status(state).to_owned(),
        was_owner: before.owner.map(|owner| owner.to_string()),
        was_revision: None,
        anew: false,
        values: Values::of_step(&after, turn, hold.ttl),
    };
    Some((answer, write))
}

/// A record that this owner has claimed, of which nothing else is known: its turn is none that there is.
fn processing(owner: Owner) -> Record {
    Record {
        state: State::Processing,
        turn: Turn { generation: u32::MAX, step: u32::MAX },
        fingerprint: None,
        owner: Some(owner),
        lease_until: 0,
        crashes: 0,
        error: None,
        lettered: false,
    }
}
