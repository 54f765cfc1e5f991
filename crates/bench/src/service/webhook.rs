//! A server of webhooks: answers every call with 204, after a closure has seen it.
//!
//! It knows as much of HTTP/1.1 as the product's calls need: bodies with a length, connections that are
//! kept open.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Listens on a free port of this machine, and gives every whole request, head and body, to `see`.
pub(crate) async fn listen(see: impl Fn(&[u8]) + Send + Sync + 'static) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let see = Arc::new(see);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let see = Arc::clone(&see);
            tokio::spawn(async move { answer(stream, &*see).await });
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, see: &(impl Fn(&[u8]) + Sync)) -> Result<()> {
    let mut buffer = Vec::with_capacity(4096);
    loop {
        while let Some(length) = request_length(&buffer) {
            see(&buffer[..length]);
            buffer.drain(..length);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Bytes of the first request, when it is there as a whole.
fn request_length(buffer: &[u8]) -> Option<usize> {
    let head_end = buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&buffer[..head_end]).ok()?;
    let length = header(head, "content-length").and_then(|v| v.parse::<usize>().ok()).unwrap_or(0);
    (buffer.len() >= head_end + length).then_some(head_end + length)
}

/// A field of a request's head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
