//! The load: plain HTTP/1.1 over kept connections, with bodies made on the way, at little cost.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Filler that brings the payload to 200 bytes.
const PAD: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// What tasks are like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Due at random from now on.
    Spread { within_ms: i64 },
    /// The same with a random id and a key each.
    RandomIds { within_ms: i64 },
    /// Due at random within a span; the payload says when.
    Between { from_ms: i64, within_ms: i64 },
}

/// Tasks to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) tasks: u64,
    pub(crate) batch: usize,
    pub(crate) connections: usize,
    pub(crate) shape: Shape,
    pub(crate) hook: SocketAddr,
}

/// What was sent, how long it took.
pub(crate) struct Done {
    tasks: u64,
    took: Duration,
    latency: Histogram<u64>,
}

impl Done {
    pub(crate) fn rate(&self) -> f64 {
        self.tasks as f64 / self.took.as_secs_f64()
    }

    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }
}

pub(crate) fn wall_ms() -> i64 {
    wall_us() / 1_000
}

pub(crate) fn wall_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
}

impl Load {
    /// Sends it and waits for every answer.
    pub(crate) async fn run(self, server: SocketAddr) -> Result<Done> {
        let left = Arc::new(AtomicU64::new(self.tasks));
        let begun = Instant::now();
        let mut parts = Vec::new();
        for _ in 0..self.connections {
            parts.push(tokio::spawn(self.connection(server, Arc::clone(&left))));
        }
        let mut latency = Histogram::new(3)?;
        for part in parts {
            latency.add(part.await??)?;
        }
        Ok(Done { tasks: self.tasks, took: begun.elapsed(), latency })
    }

    async fn connection(self, server: SocketAddr, left: Arc<AtomicU64>) -> Result<Histogram<u64>> {
        let mut connection = Connection::open(server).await?;
        let mut latency = Histogram::new(3)?;
        let path = if self.batch > 1 { "/v1/tasks/batch" } else { "/v1/tasks" };
        let mut rng = fastrand::Rng::new();
        let mut body = String::new();
        loop {
            let claim = self.batch as u64;
            let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                Some(n.saturating_sub(claim))
            });
            let n = before.unwrap_or(0).min(claim);
            if n == 0 {
                return Ok(latency);
            }
            self.write_body(n, &mut rng, &mut body);
            let begun = Instant::now();
            loop {
                let status = connection.post(path, &body).await?;
                match status {
                    201 => break,
                    // Back-pressure: what it asks for is to wait.
                    503 => tokio::time::sleep(Duration::from_millis(20)).await,
                    other => anyhow::bail!("{path} answered {other}: {}", connection.text()),
                }
            }
            latency.record(begun.elapsed().as_micros() as u64)?;
        }
    }

    fn write_body(&self, n: u64, rng: &mut fastrand::Rng, body: &mut String) {
        body.clear();
        let many = self.batch > 1;
        body.push_str(if many { "[" } else { "" });
        for i in 0..n {
            body.push_str(if i > 0 { "," } else { "" });
            let due = match self.shape {
                Shape::Spread { within_ms } | Shape::RandomIds { within_ms } => {
                    wall_ms() + 600_000 + rng.i64(0..within_ms)
                }
                Shape::Between { from_ms, within_ms } => from_ms + rng.i64(0..within_ms),
            };
            body.push('{');
            if let Shape::RandomIds { .. } = self.shape {
                let id = uuid::Builder::from_random_bytes(rng.u128(..).to_be_bytes()).into_uuid();
                let _ = write!(body, r#""id":"{id}","key":"order-{:016x}","#, rng.u64(..));
            }
            let _ = write!(
                body,
                r#""kind":"bench","target":{{"http":{{"method":"POST","url":"http://{}/"}}}},"#,
                self.hook
            );
            let _ = write!(body, r#""payload":{{"due_ms":{due},"pad":"{PAD}"}},"due_at":""#);
            write_instant(body, due);
            body.push_str("\"}");
        }
        body.push_str(if many { "]" } else { "" });
    }
}

/// Writes milliseconds since the Unix epoch as RFC 3339 in UTC (civil-from-days after Hinnant).
pub(crate) fn write_instant(out: &mut String, millis: i64) {
    let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s, ms) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60, rest % 1_000);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z");
}

/// One kept connection.
pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
    out: Vec<u8>,
    answer: Vec<u8>,
    body_from: usize,
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            host: server.to_string(),
            out: Vec::new(),
            answer: Vec::new(),
            body_from: 0,
        })
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<u16> {
        self.send("POST", path, body).await
    }

    pub(crate) async fn put(&mut self, path: &str, body: &str) -> Result<u16> {
        self.send("PUT", path, body).await
    }

    async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<u16> {
        use std::io::Write;
        self.out.clear();
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.host,
            body.len()
        )?;
        self.out.extend_from_slice(body.as_bytes());
        self.stream.write_all(&self.out).await?;
        self.read_answer().await
    }

    async fn get(&mut self, path: &str) -> Result<u16> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.write_all(request.as_bytes()).await?;
        self.read_answer().await
    }

    async fn read_answer(&mut self) -> Result<u16> {
        self.answer.clear();
        let mut need = None;
        loop {
            if need.is_none()
                && let Some(at) = find(&self.answer, b"\r\n\r\n")
            {
                self.body_from = at + 4;
                let head = std::str::from_utf8(&self.answer[..at])?;
                let length = head
                    .lines()
                    .filter_map(|l| l.split_once(':'))
                    .find(|(k, _)| k.eq_ignore_ascii_case("content-length"))
                    .map_or(Ok(0), |(_, v)| v.trim().parse::<usize>())?;
                need = Some(at + 4 + length);
            }
            if need.is_some_and(|need| self.answer.len() >= need) {
                let status = self.answer.get(9..12).context("a short answer")?;
                return Ok(std::str::from_utf8(status)?.parse()?);
            }
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                anyhow::bail!("the connection was closed");
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.answer[self.body_from..]).into_owned()
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// One request on a connection of its own: status and body.
pub(crate) async fn get(server: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut connection = Connection::open(server).await?;
    let status = connection.get(path).await?;
    Ok((status, connection.text()))
}
