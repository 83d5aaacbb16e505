//! A connection's byte stream, plain or inside TLS.

use super::Socket;
use crate::read_ahead::ReadAhead;
use std::io::{self, Read, Write};

/// The byte stream under a connection: plain, or inside TLS.
pub enum Stream {
    /// No encryption.
    Plain(Socket),
    /// TLS over the same kind of socket.
    Tls(Box<openssl::ssl::SslStream<Buffered>>),
}

/// A socket below TLS, which reads a record's header and its body one after the other.
#[derive(Debug)]
pub struct Buffered {
    socket: Socket,
    ahead: ReadAhead,
}

impl Buffered {
    /// Below TLS that begins with `received`, which has been read from the socket already.
    pub(crate) fn new(socket: Socket, received: &[u8]) -> Self {
        let mut ahead = ReadAhead::default();
        ahead.extend(received);
        Self { socket, ahead }
    }
}

impl Read for Buffered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            if buffer.len() >= self.ahead.capacity() {
                return self.socket.read(buffer);
            }
            self.ahead.fill(|free| self.socket.read(free))?;
        }
        let count = buffer.len().min(self.ahead.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), self.ahead.data().get(..count)) {
            to.copy_from_slice(from);
        }
        self.ahead.consume(count);
        Ok(count)
    }
}

impl Write for Buffered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// The socket below.
    pub fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &tls.get_ref().socket,
        }
    }
    /// Whether bytes are encrypted on the wire.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }
    /// The version of TLS as OpenSSL names it, such as `TLSv1.3`.
    pub fn tls_version(&self) -> Option<&'static str> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => Some(tls.ssl().version_str()),
        }
    }
    /// The cipher that TLS uses, by OpenSSL's name.
    pub fn cipher(&self) -> Option<&'static str> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => tls.ssl().current_cipher().map(|cipher| cipher.name()),
        }
    }
    /// Bytes that wait inside TLS, decrypted or not, which `poll` on the socket does not see. An error of TLS shows at
    /// the next read.
    pub fn buffered(&self) -> usize {
        match self {
            Stream::Plain(_) => 0,
            Stream::Tls(tls) => tls.ssl().pending() + tls.get_ref().ahead.len(),
        }
    }
    /// Frees memory beyond what an idle connection needs.
    pub(crate) fn shrink(&mut self) {
        if let Stream::Tls(tls) = self {
            tls.get_mut().ahead.shrink();
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(tls) => match tls.read(buffer) {
                Err(error) if is_unclean_close(&error) => Ok(0),
                result => result,
            },
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

/// Many MySQL clients close TCP without TLS's own goodbye, which OpenSSL 3 calls an error. The protocol above has
/// its own framing, so that a cut inside a packet is still noticed.
fn is_unclean_close(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<openssl::ssl::Error>());
    let stack = cause.and_then(openssl::ssl::Error::ssl_error);
    stack.is_some_and(|stack| {
        stack.errors().iter().any(|e| e.reason().is_some_and(|r| r.contains("unexpected eof")))
    })
}
