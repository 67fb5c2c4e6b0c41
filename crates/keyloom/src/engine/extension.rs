//! Conveniences on top of the engine contract, the same for every engine.

use async_trait::async_trait;

use super::{
    Address, Cell, Direction, Engine, Link, LogBounds, Position, Range, Recipe, Row, ShowKey,
    Space, Stretch, Trail,
};
use crate::error::{Error, ErrorKind, Result};

/// Frequent calls, composed of the methods that every engine has.
#[async_trait]
pub trait EngineExt: Engine {
    /// Reads one cell.
    async fn get_one(&self, space: &Space, address: &Address) -> Result<Option<Cell>> {
        only(self.get(space, std::slice::from_ref(address)).await?)
    }

    /// Reads one range, up to `limit` or as far as the engine reads.
    async fn scan_one(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
    ) -> Result<Stretch<Row>> {
        only(self.scan(space, std::slice::from_ref(range), limit, direction).await?)
    }

    /// Follows the entries of one range, up to `limit` or as far as the engine reads.
    async fn follow_one(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
        recipe: &Recipe,
    ) -> Result<Stretch<Link>> {
        let trail = Trail { range: range.clone(), recipe };
        only(self.follow(space, &[trail], limit, direction).await?)
    }

    /// The part of a space's log that is kept.
    async fn log_bounds(&self, space: &Space) -> Result<LogBounds> {
        Ok(self.read_log(space, Position::FIRST, 0, 0).await?.bounds)
    }

    /// Reads one range completely, `page` rows per round trip. Each page is read at its own time.
    async fn scan_all(
        &self,
        space: &Space,
        range: &Range,
        page: usize,
        direction: Direction,
    ) -> Result<Vec<Row>> {
        let mut left = range.clone();
        let mut rows = Vec::new();
        loop {
            let stretch = self.scan_one(space, &left, page.max(1), direction).await?;
            // An engine that gives a row again would cause an endless loop.
            if let Some(stray) = stretch.rows.iter().find(|row| !left.contains(&row.key)) {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "an engine keeps to the range asked for",
                )
                .with("range", format_args!("{left:?}"))
                .with("key", ShowKey(&stray.key)));
            }
            rows.extend(stretch.rows);
            match rows.last() {
                Some(last) if stretch.more => left = left.after(&last.key, direction),
                Some(_) | None => return Ok(rows),
            }
        }
    }
}

impl<E: Engine + ?Sized> EngineExt for E {}

/// The only answer of a call with one question.
fn only<T>(answers: Vec<T>) -> Result<T> {
    let count = answers.len();
    let mut answers = answers.into_iter();
    match (answers.next(), answers.next()) {
        (Some(answer), None) => Ok(answer),
        _ => Err(Error::new(ErrorKind::Internal, "an engine answers each question once")
            .with("questions", 1)
            .with("answers", count)),
    }
}
