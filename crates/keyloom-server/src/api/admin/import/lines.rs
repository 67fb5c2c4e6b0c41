//! Reads the lines of a body one by one, in bounded memory.

use std::time::Duration;

use axum::body::Body;
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::problem::Problem;

/// Reads lines from a body.
pub(super) struct Lines {
    body: Body,
    /// Bytes that have arrived and are not given yet.
    left: BytesMut,
    /// The length of the part without a line end.
    searched: usize,
    bytes_max: usize,
    /// How long the next part may take to arrive.
    patience: Duration,
    /// Whether the current line is too long already, so that its rest is dropped.
    is_dropping: bool,
    is_over: bool,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its text, without the line end.
    Text(Bytes),
    /// It is longer than a line may be.
    TooLong,
}

impl Lines {
    pub(super) fn new(body: Body, bytes_max: usize, patience: Duration) -> Self {
        let (left, is_dropping, is_over) = (BytesMut::new(), false, false);
        Lines { body, left, searched: 0, bytes_max, patience, is_dropping, is_over }
    }

    /// The next line; `None` after the last. Waits for it to arrive.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            if let Some(line) = self.at_hand() {
                return Ok(Some(line));
            }
            if self.is_over {
                return Ok(self.last());
            }
            match tokio::time::timeout(self.patience, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.left.extend_from_slice(&data);
                    }
                }
                Ok(Some(Err(_))) => return Err(Problem::invalid_request("the body broke off")),
                Ok(None) => self.is_over = true,
                Err(_) => return Err(Problem::request_timeout()),
            }
        }
    }

    /// The next line, if it has arrived already.
    pub(super) fn at_hand(&mut self) -> Option<Line> {
        let end = self.left.iter().skip(self.searched).position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| end + self.searched) else {
            self.searched = self.left.len();
            if self.left.len() > self.bytes_max {
                self.is_dropping = true;
                self.left.clear();
                self.searched = 0;
            }
            return None;
        };
        let line = self.left.split_to(end).freeze();
        self.left.advance(1);
        self.searched = 0;
        Some(self.line(line))
    }

    /// The text after the last line end.
    fn last(&mut self) -> Option<Line> {
        let line = self.left.split().freeze();
        self.searched = 0;
        (!line.is_empty() || self.is_dropping).then(|| self.line(line))
    }

    fn line(&mut self, text: Bytes) -> Line {
        if std::mem::take(&mut self.is_dropping) || text.len() > self.bytes_max {
            return Line::TooLong;
        }
        match text.strip_suffix(b"\r") {
            Some(stripped) => Line::Text(text.slice_ref(stripped)),
            None => Line::Text(text),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use std::convert::Infallible;

    use futures_util::stream;
    use proptest::prelude::*;

    use super::*;

    async fn lines(parts: Vec<Vec<u8>>, bytes_max: usize) -> Vec<Line> {
        let parts = parts.into_iter().map(|part| Ok::<_, Infallible>(Bytes::from(part)));
        let body = Body::from_stream(stream::iter(parts));
        let mut reader = Lines::new(body, bytes_max, Duration::from_secs(5));
        let mut found = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            found.push(line);
        }
        found
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_are_cut(
            text in prop::collection::vec(prop::sample::select(b"ab\r\n".to_vec()), 0..60),
            cuts in prop::collection::vec(1_usize..9, 1..30),
            bytes_max in 1_usize..8,
        ) {
            let mut parts = Vec::new();
            let mut rest = &text[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (part, tail) = rest.split_at((*cut).min(rest.len()));
                parts.push(part.to_vec());
                rest = tail;
            }
            let mut wanted: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            if wanted.last().is_some_and(|last| last.is_empty()) { wanted.pop(); }
            let wanted: Vec<Line> = wanted.into_iter().map(|line| match line.len() > bytes_max {
                true => Line::TooLong,
                false => Line::Text(Bytes::copy_from_slice(line.strip_suffix(b"\r").unwrap_or(line))),
            }).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let found = runtime.unwrap().block_on(lines(parts, bytes_max));
            prop_assert_eq!(found, wanted);
        }
    }
}
