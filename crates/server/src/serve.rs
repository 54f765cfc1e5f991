//! Accepting connections and ending in order.
//!
//! What always holds: connections are bounded in number; a request's head has a time limit;
//! shutdown stops accepting, ends replies that would go on for ever, lets requests under way
//! finish within a bound and closes idle connections at once. HTTP/1.1 only.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::doors::Ends;
use crate::state::{App, Shared};
use crate::{Node, ServeOptions, routes};

/// The wait after an accept that failed for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the API and the console on a bound socket until `shutdown` is ready, then lets what is
/// under way finish, for at most [`ServeOptions::drain`].
///
/// The socket's own address counts as [`ServeOptions::listen`]. The node is not shut down.
///
/// # Errors
///
/// A socket beyond loopback without a token to guard it; a socket without an address.
pub async fn serve(
    listener: TcpListener,
    node: Node,
    mut options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    options.listen = listener.local_addr()?;
    if !options.listen.ip().is_loopback() && options.token.as_ref().is_none_or(String::is_empty) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} can be reached from other machines: a token is needed", options.listen),
        ));
    }
    let app = Shared::new(node, options);
    let router = routes::router(app.clone());
    accept(&listener, router, &app, shutdown).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    router: Router,
    app: &App,
    shutdown: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(app.options.connections_max));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = async {
            // The semaphore is never closed.
            let permit = room.clone().acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = &mut shutdown => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(local) = stream.local_addr() else { continue };
        // Replies are written whole, so waiting for more bytes only adds to their latency.
        let _ = stream.set_nodelay(true);
        let connection = connection(stream, router.clone(), Ends { peer, local }, app);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, %peer, "connection ended");
            }
            drop(permit);
        });
    }
    app.closing.send_replace(true);
    if tokio::time::timeout(app.options.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still under way when the time to drain was over");
    }
}

fn connection(
    stream: TcpStream,
    router: Router,
    ends: Ends,
    app: &App,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ends);
        router.clone().call(request)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.options.header_timeout)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service)
}
