//! A small HTTP server: one request on each connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Largest request that is read, in bytes.
const LARGEST: usize = 1 << 20;

/// What was asked.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
    /// The parameters of a form.
    pub fn form(&self) -> Vec<(String, String)> {
        let pairs = self.body.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (unescape(name), unescape(value))).collect()
    }
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.form().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        match (first, others) {
            (b'%', [high, low, others @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = others;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

impl Response {
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }
    fn head(&self, length: usize) -> String {
        let mut head =
            format!("HTTP/1.1 {} Fake\r\nContent-Length: {length}\r\nConnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }
}

/// Reads one request; `None` where the client has gone.
pub fn read(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(request) = parse(&bytes) {
            return Ok(Some(request));
        }
        let count = stream.read(&mut piece)?;
        if count == 0 || bytes.len() > LARGEST {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece[..count]);
    }
}

fn parse(bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let request =
        Request { method, path, headers: lines.filter_map(header).collect(), body: body.to_owned() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    (body.len() == length).then_some(request)
}

/// Writes an answer that is complete.
pub fn write(stream: &mut TcpStream, response: &Response) -> io::Result<()> {
    stream.write_all(response.head(response.body.len()).as_bytes())?;
    stream.write_all(response.body.as_bytes())
}

/// Writes half of an answer that says it is whole.
pub fn write_half(stream: &mut TcpStream, response: &Response) -> io::Result<()> {
    stream.write_all(response.head(response.body.len()).as_bytes())?;
    stream.write_all(&response.body.as_bytes()[..response.body.len() / 2])
}
