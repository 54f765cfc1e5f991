//! The stream of events: server-sent events as documents.
//!
//! Reads the part of the format that the server writes: `data` lines and empty lines; comments,
//! `event`, `id` and `retry` are passed over, for the document has them. One event has a bound.

use reqwest::Response;
use tourbillon_wire::{Event, EventsQuery};

use crate::{Client, ClientError};

/// The largest event that is read.
const EVENT_BYTES_MAX: usize = 1 << 20;

impl Client {
    /// Opens the stream of events that match. Lasts until the server closes it.
    pub async fn events(&self, query: &EventsQuery) -> Result<Events, ClientError> {
        let response = self.get(&["v1", "events"]).query(query)?.open("text/event-stream").await?;
        Ok(Events { response, parser: Parser::default() })
    }
}

/// An open stream of events.
#[derive(Debug)]
pub struct Events {
    response: Response,
    parser: Parser,
}

impl Events {
    /// The next event; `None` when the server has closed the stream. Safe to drop while waiting.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(data) = self.parser.next()? {
                return serde_json::from_str(&data).map(Some).map_err(|e| {
                    ClientError::reply("an event is not what was expected", Some(e.into()))
                });
            }
            let chunk = self
                .response
                .chunk()
                .await
                .map_err(|e| ClientError::transport(self.response.url().as_str(), e))?;
            match chunk {
                Some(chunk) => self.parser.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

#[derive(Debug, Default)]
struct Parser {
    buffer: Vec<u8>,
    data: String,
}

impl Parser {
    /// The data of the next whole event, or `None` when more bytes are needed.
    fn next(&mut self) -> Result<Option<String>, ClientError> {
        while let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                if !self.data.is_empty() {
                    return Ok(Some(std::mem::take(&mut self.data)));
                }
            } else if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        if self.buffer.len() + self.data.len() > EVENT_BYTES_MAX {
            return Err(ClientError::reply("an event has more than 1 MiB", None));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let text = ": hello\n\nevent: task.created\nid: 1\ndata: {\"a\":1}\n\ndata:x\r\ndata: y\r\n\r\nretry: 5\n\n";
        for cut in 1..text.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for part in text.as_bytes().chunks(cut) {
                parser.buffer.extend_from_slice(part);
                while let Some(data) = parser.next().unwrap() {
                    events.push(data);
                }
            }
            assert_eq!(events, ["{\"a\":1}", "x\ny"], "cut at {cut}");
        }
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let mut parser = Parser { buffer: vec![b'x'; EVENT_BYTES_MAX + 1], data: String::new() };
        assert!(parser.next().is_err());
    }
}
