//! Documents of the HTTP API, shared by server and client.
