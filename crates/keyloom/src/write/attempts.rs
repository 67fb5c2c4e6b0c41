//! The attempts at one write: what each begins with, and what follows when it is refused.

use bytes::Bytes;

use crate::engine::Address;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Collection;
use crate::side::Refused;
use crate::space::{Attempts as UnderSchema, Retry, Session, Turn, Under};

/// The attempts at one write.
pub(super) struct Attempts<'s> {
    session: &'s Session,
    /// Those that a change of the schema interrupted.
    pub(super) under_schema: UnderSchema<'s>,
    retry: Retry,
    /// How many were refused because somebody else was faster.
    lost: u32,
    /// What the next attempt holds.
    pub(super) turns: Vec<Turn>,
}

impl<'s> Attempts<'s> {
    pub(super) fn new(session: &'s Session, retry: Retry) -> Self {
        let under_schema = session.live.writes();
        Attempts { session, under_schema, retry, lost: 0, turns: Vec::new() }
    }

    /// Begins an attempt at one record, before it is read: beside others, or in its turn if
    /// somebody waits for the record already.
    pub(super) async fn begin(&mut self, collection: &Collection, key: &Bytes) {
        let address = Address::new(collection.area.clone(), key.clone());
        if self.turns.iter().any(|turn| turn.is_turn_of(&address)) {
            return;
        }
        self.turns.clear();
        let turns = &self.session.live.turns;
        let share = turns.share(&address);
        self.turns.push(match share {
            Some(share) => share,
            None => turns.turn(&address).await,
        });
    }

    /// What follows from the answer to an attempt at these records: `true` when it was carried
    /// out, `false` when it is worth another one, which may begin now.
    pub(super) async fn is_settled(
        &mut self,
        attempt: Under<Option<Refused>>,
        records: impl FnOnce() -> Vec<Address>,
    ) -> Result<bool> {
        let Some(refused) = self.under_schema.settle(attempt).await? else { return Ok(false) };
        match refused {
            None => Ok(true),
            Some(Refused::Changed(error) | Refused::Counted(error, _)) => {
                match self.go_on_after(records()).await {
                    true => Ok(false),
                    false => Err(contention(error, self.lost)),
                }
            }
            Some(Refused::Taken(_, _, error) | Refused::Final(error)) => Err(error),
        }
    }

    /// Waits until a lost attempt at these records is worth another one: for the writer's turn,
    /// or, if it had its turn and lost to somebody out of this process, for a while. `false`
    /// when it was the last.
    pub(super) async fn go_on_after(&mut self, records: Vec<Address>) -> bool {
        self.lost += 1;
        let had_its_turn =
            records.iter().all(|record| self.turns.iter().any(|turn| turn.is_turn_of(record)));
        if had_its_turn || self.lost >= self.retry.attempts {
            return self.retry.pause(self.lost).await;
        }
        // Whoever waits holds nothing.
        self.turns.clear();
        self.turns = self.session.live.turns.turns(records).await;
        true
    }
}

pub(super) fn contention(last: Error, attempts: u32) -> Error {
    Error::new(ErrorKind::Contention, "other writers won every attempt")
        .with("attempts", attempts)
        .with("last conflict", &last)
        .with_source(last)
}
